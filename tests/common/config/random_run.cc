#include "tests/common/config/random_run.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>

#include "common/config/field_table.h"
#include "common/model/presets.h"
#include "common/settings/carried_state.h"

namespace slipstream {

RunSpec DefaultRun() {
  RunSpec spec;
  spec.model = *FindPreset("lenet5");
  return spec;
}

namespace {

/// Returns a random value of a type, mostly at or near its bounds.
struct RandomValue {
  RandomStream& random;

  ScalarValue operator()(const CountType& type) const {
    const uint64_t span = type.max - type.min;
    return type.min +
           (span == 0 ? 0
                      : random.Below(static_cast<uint32_t>(std::min<uint64_t>(span, 1'000'000))));
  }
  ScalarValue operator()(const BytesType& type) const {
    if (type.takes_zero && random.Below(4) == 0) return uint64_t{0};
    const uint64_t steps = (type.max - type.min) / type.multiple_of;
    const auto bound = static_cast<uint32_t>(std::min<uint64_t>(steps, 1u << 20));
    return type.min + type.multiple_of * random.Below(bound);
  }
  ScalarValue operator()(const NumberType& type) const {
    const double max = std::min(type.max, 100.0);
    return type.min + (max - type.min) * (0.001 + 0.99 * random.Unit());
  }
  ScalarValue operator()(const DurationType& type) const {
    const auto span = static_cast<uint32_t>(absl::ToInt64Milliseconds(type.max - type.min));
    return type.min + absl::Milliseconds(random.Below(span));
  }
  ScalarValue operator()(const FlagType&) const { return random.Below(2) == 1; }
  ScalarValue operator()(const TextType& type) const {
    if (type.form == TextType::Form::kDevice) return "cuda:" + std::to_string(random.Below(256));
    const std::string any = "ab1:/. #'\"\\[]{},&*!|%@-";
    const std::string name = "abYN019._-";
    const bool is_name = type.form == TextType::Form::kName;
    const std::string& letters = is_name ? name : any;
    std::string text;
    for (uint32_t i = 1 + random.Below(12); i > 0; --i) {
      text += letters[random.Below(static_cast<uint32_t>(letters.size()))];
      if (!is_name && random.Below(20) == 0) text += "ä";
    }
    return text;
  }
  ScalarValue operator()(const ChoiceType& type) const {
    return type.names[random.Below(static_cast<uint32_t>(type.names.size()))];
  }
};

/// Adds policies for the first epochs where the other settings go with all policies.
void AddStages(RandomStream& random, RunSpec& spec) {
  const WorkerSpec& worker = spec.worker;
  const bool goes_with_all = RowOf(worker.algorithm).why_policy.empty() && !worker.steps_by_speed &&
                             worker.pushes_per_fetch() == 1 && spec.training.pipeline_depth == 1;
  if (spec.training.epochs <= 2 || !goes_with_all || spec.consistency.traits().adds_in_place())
    return;
  PolicyStage stage = {.consistency = {.policy = PolicyKind::kHardsync}, .until_epoch = 1};
  spec.policies_before.push_back(stage);
  if (spec.consistency.traits().in_step) {
    stage.consistency.policy = PolicyKind::kBackup;
  } else {
    stage.consistency.policy = PolicyKind::kSoftsync;
    stage.consistency.parameters["c"] = static_cast<double>(random.Below(100));
  }
  stage.until_epoch = 2;
  spec.policies_before.push_back(stage);
}

/// Adds as many fragments as servers where the algorithm has them.
void AddFragments(RandomStream& random, RunSpec& spec) {
  if (spec.worker.algorithm != AlgorithmKind::kDiloco) return;
  spec.worker.parameters["steps"] = 2 + random.Below(90);
  spec.worker.parameters["fragments"] = 2;
  spec.worker.parameters["fragment_delay"] = random.Below(2) * (spec.worker.quantum() / 2 - 1);
  spec.worker.parameters["mixing"] = 0.5;
  spec.wire.transport = WireSpec::Transport::kAuto;
}

/// Keeps several threads where the other settings go with them.
void AdjustThreads(RandomStream& random, RunSpec& spec) {
  const WorkerSpec& worker = spec.worker;
  const bool have_work = RowOf(worker.algorithm).has_local_weights && worker.fragments() == 1 &&
                         spec.data.from == SuppliedBy::kSettings &&
                         RowOf(spec.optimizer.kind).state_arrays == 0;
  spec.worker.threads = 1;
  if (!have_work || random.Below(2) == 0) return;
  spec.compute.device = {};
  const auto most = static_cast<uint32_t>(std::min<uint64_t>(worker.quantum(), kWorkerThreadsMax));
  spec.worker.threads = 1 + random.Below(most);
}

/// Keeps free lanes where no worker waits for others.
void FitFreeLanes(RunSpec& spec) {
  if (!spec.worker.has_free_lanes()) return;
  if (spec.consistency.traits().waits_for_members || spec.data.from == SuppliedBy::kWorkers) {
    spec.worker.lanes = WorkerSpec::Lanes::kStep;
    return;
  }
  spec.training.pipeline_depth = 2;
  spec.readers.on_lag = ReadersSpec::OnLag::kReport;
  if (RowOf(spec.optimizer.staleness_scaling).uses_base_weights) {
    spec.optimizer.staleness_scaling = StalenessScaling::kNone;
    spec.optimizer.scaling_parameters = {};
  }
}

/// Makes the sources of the model and the examples agree.
void AddSources(RunSpec& spec) {
  if (spec.model_from == SuppliedBy::kWorkers) {
    spec.model = {};
    spec.data = {.from = SuppliedBy::kWorkers, .examples = spec.data.examples};
  }
  const bool is_own = spec.training.work == TrainingSpec::Work::kOwn;
  if (is_own && spec.data.examples == 0) spec.training.epochs = 1;
  if (spec.evaluation.by == EvaluationSpec::By::kNobody) spec.training.target_accuracy = 0;
}

/// Whole weights, which all-reduce publishes too, go with few settings, and only with a rule of
/// their own.
void ReplacePublishing(RunSpec& spec) {
  if (spec.workers_make_weights()) spec.consistency.policy = PolicyKind::kHardsync;
  const bool publishes = RowOf(spec.worker.algorithm).pushes == PushKind::kValues;
  if (publishes) spec.worker = {};
  if (RowOf(spec.optimizer.kind).takes_values) {
    spec.optimizer.kind = RuleKind::kSgd;
    spec.optimizer.parameters = {};
  }
  if (RowOf(spec.worker.outer.kind).takes_values) spec.worker.outer = WorkerSpec().outer;
}

/// Additions in place go with few settings.
void FitInPlace(RunSpec& spec) {
  if (!spec.consistency.traits().adds_in_place()) return;
  spec.optimizer.kind = RuleKind::kSgd;
  spec.optimizer.parameters = {};
  spec.optimizer.staleness_scaling = StalenessScaling::kNone;
  spec.optimizer.scaling_parameters = {};
  spec.worker.outer = WorkerSpec().outer;
  spec.readers.versions_kept = 1;
  StalenessGuardSpec& guard = spec.consistency.max_staleness;
  if (guard.action == StalenessGuardSpec::Action::kBlock) {
    guard.action = StalenessGuardSpec::Action::kReject;
  }
}

void AddSlowdowns(RandomStream& random, RunSpec& spec) {
  for (uint32_t worker = random.Below(4); worker > 0; --worker) {
    spec.testing.workers.push_back(
        {.delay = absl::Milliseconds(random.Below(10'001)), .slower = 1 + 999 * random.Unit()});
  }
}

/// Aggregators go with few settings.
void FitTree(RunSpec& spec) {
  const auto is_combined = [](const PolicyStage& stage) {
    const PolicyKind policy = stage.consistency.policy;
    return policy == PolicyKind::kHardsync || policy == PolicyKind::kSoftsync ||
           policy == PolicyKind::kAsync;
  };
  const bool fits = spec.cluster.tree.fanout > 1 &&
                    std::ranges::all_of(spec.stages(), is_combined) &&
                    spec.worker.algorithm == AlgorithmKind::kGradient &&
                    !RowOf(spec.optimizer.staleness_scaling).uses_base_weights;
  if (!fits) spec.cluster.tree.fanout = 0;
}

/// Lost workers are waited for where members are, and not by aggregators.
void FitWorkerLoss(RandomStream& random, RunSpec& spec) {
  const auto waits = [](const PolicyStage& stage) {
    return stage.consistency.traits().waits_for_members;
  };
  const bool fits = std::ranges::any_of(spec.stages(), waits) && spec.cluster.tree.fanout == 0;
  if (!fits) spec.cluster.on_worker_loss = ClusterSpec::OnWorkerLoss::kShrink;
  spec.cluster.min_workers = 1 + random.Below(spec.cluster.workers);
}

/// Checkpoints are of versions, and aggregators do not know of servers that return to one.
void FitDurability(RunSpec& spec) {
  const auto has_versions = [](const PolicyStage& stage) {
    const PolicyTraits& traits = stage.consistency.traits();
    return !traits.adds_in_place() && !traits.workers_make_weights();
  };
  const bool fits =
      std::ranges::all_of(spec.stages(), has_versions) && spec.cluster.tree.fanout == 0;
  if (!fits) spec.durability = {};
}

/// The weights to begin with come from one place, and servers that read them have weights.
void FitStart(RunSpec& spec) {
  if (spec.workers_make_weights() || !spec.model_files.init.empty()) spec.training.start_from = {};
}

/// Workers' state is saved where ps_worker has some.
void FitSaveState(RunSpec& spec) {
  const bool fits = !CarriedState(spec).empty() && spec.data.from == SuppliedBy::kSettings;
  if (!fits) spec.worker.save_state = {};
}

/// Draws a number of workers that the policy allows.
void AddWorkers(RandomStream& random, RunSpec& spec) {
  uint32_t workers_min = 1;
  for (const ParameterRow& row : kPolicyParameters) {
    const auto value = static_cast<uint32_t>(spec.consistency.parameters[row.key]);
    if (row.limit == ParameterRow::Limit::kWorkers) workers_min = std::max(workers_min, value);
    if (row.limit == ParameterRow::Limit::kBelowWorkers) {
      workers_min = std::max(workers_min, value + 1);
    }
  }
  spec.cluster.workers = workers_min + random.Below(kWorkersMax + 1 - workers_min);
}

}  // namespace

RunSpec RandomRun(RandomStream& random) {
  RunSpec spec = DefaultRun();
  for (const Field& field : Fields()) {
    const auto* type = std::get_if<ScalarType>(&field.type);
    if (type == nullptr || field.path == "model.preset" || !field.Applies(spec)) continue;
    field.set(spec, std::visit(RandomValue{random}, *type));
  }
  if (random.Below(2) == 0) spec.model = *FindPreset("mlp");
  if (spec.data.format == DataSpec::Format::kCifar10) spec.model = *FindPreset("cifar_quick");
  if (random.Below(2) == 0) spec.model.preset.clear();
  if (spec.data.format == DataSpec::Format::kCsv && spec.data.header != DataSpec::Header::kAbsent) {
    spec.data.label_columns = {"price, in [€]"};
  }
  AddSources(spec);
  ReplacePublishing(spec);
  if (spec.model.loss == ModelSpec::Loss::kMse) spec.training.target_accuracy = 0;
  if (spec.optimizer.schedule.kind == ScheduleSpec::Kind::kStep) {
    spec.optimizer.schedule.at_epochs = {0.1, 1.0 / 3, 7};
  }
  if (RowOf(spec.worker.algorithm).has_local_weights) {
    spec.training.pipeline_depth = 1;
    if (RowOf(spec.optimizer.staleness_scaling).uses_base_weights) {
      spec.optimizer.staleness_scaling = StalenessScaling::kNone;
      spec.optimizer.scaling_parameters = {};
    }
  }
  AddSlowdowns(random, spec);
  if (random.Below(2) == 0) {
    spec.optimizer.per_tensor = {{.match = "*.bias", .weight_decay = random.Unit() / 2},
                                 {.match = "*", .learning_rate_factor = 9 * random.Unit()}};
    spec.optimizer.per_tensor[random.Below(2)].learning_rate_factor = 0;
  }
  spec.http.listen = random.Below(2) == 0 ? std::string(HttpSpec::kNone)
                                          : "[::1]:" + std::to_string(random.Below(65536));
  spec.cluster.servers = {"localhost:" + std::to_string(1 + random.Below(65535)), "[::1]:7070"};
  StalenessGuardSpec& guard = spec.consistency.max_staleness;
  if (spec.consistency.traits().keeps_pace && guard.action == StalenessGuardSpec::Action::kBlock) {
    guard.action = StalenessGuardSpec::Action::kReject;
  }
  if (const AlgorithmRow& row = RowOf(spec.worker.algorithm);
      !row.why_policy.empty() && row.policy != spec.consistency.policy) {
    spec.worker = {};
  }
  if (spec.consistency.traits().work == PolicyTraits::Work::kRounds) {
    spec.worker.steps_by_speed = false;
  }
  if (RowOf(spec.worker.algorithm).pushes_per_fetch != nullptr) {
    const uint32_t pushes = spec.consistency.traits().waits_for_members ? 1 : random.Below(90);
    spec.worker.parameters["fetch_every"] = pushes * spec.worker.parameters["push_every"];
  }
  FitInPlace(spec);
  FitFreeLanes(spec);
  AddFragments(random, spec);
  AdjustThreads(random, spec);
  if (spec.consistency.parameters["c"] > 0) spec.consistency.parameters["n"] = 1;
  AddStages(random, spec);
  FitTree(spec);
  FitDurability(spec);
  FitStart(spec);
  AddWorkers(random, spec);
  FitWorkerLoss(random, spec);
  const bool is_encoded = spec.wire.transport != WireSpec::Transport::kShm;
  spec.wire.push_codec = static_cast<Encoding>(random.Below(is_encoded ? kEncodingRows.size() : 1));
  spec.wire.pull_codec = static_cast<Encoding>(random.Below(is_encoded ? 4 : 1));
  FitSaveState(spec);
  spec.wire.push_bytes_max = random.Below(2) == 0 ? 0 : 1'000'000 + random.Below(1'000'000);
  return spec;
}

}  // namespace slipstream
