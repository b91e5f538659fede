#include "common/config/run_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/config/all_reduce_checks.h"
#include "common/config/durability_checks.h"
#include "common/config/epoch_checks.h"
#include "common/config/field_table.h"
#include "common/config/server_address.h"
#include "common/config/stage_checks.h"
#include "common/config/start_checks.h"
#include "common/config/tensor_options_table.h"
#include "common/config/tree_checks.h"
#include "common/config/worker_checks.h"
#include "common/config/worker_loss_checks.h"
#include "common/layout/shard_map.h"
#include "common/model/net_shapes.h"
#include "common/model/presets.h"
#include "common/run/known_examples.h"
#include "common/run/policy_rows.h"
#include "common/run/shards.h"

namespace slipstream {
namespace {

using Draft = const RunDraft&;
using Diagnostics = DiagnosticList&;

/// Checks the policy's parameters against the bounds that follow from the number of workers.
void CheckPolicy(Draft draft, Diagnostics diagnostics) {
  const ConsistencySpec& consistency = draft.spec.consistency;
  if (!draft.IsUsable("consistency.policy") || !draft.IsUsable("cluster.workers")) return;
  for (const ParameterRow& row : kPolicyParameters) {
    const std::string path = fmt::format("consistency.{}", row.key);
    const bool is_taken = FindField(path)->Applies(draft.spec);
    if (!is_taken || !draft.IsUsable(path)) continue;
    const double value = consistency.parameters[row.key];
    const double workers = draft.spec.cluster.workers;
    if (row.Fits(value, workers)) continue;
    diagnostics.Report(draft.KeySource(path), DescribeMisfit(row, value, workers));
  }
}

/// Checks that block with a bound of 0 can work. No round closes then while any other gradient is
/// on its way, so each worker has to wait with its only gradient until the round closes; and that
/// holds at the first shard alone.
void CheckThatAllWait(Draft draft, Diagnostics diagnostics) {
  const RunSpec& spec = draft.spec;
  for (const char* key : {"cluster.servers", "cluster.workers", "training.pipeline_depth"}) {
    if (!draft.IsUsable(key)) return;
  }
  const bool all_wait = spec.cluster.servers.size() == 1 || spec.cluster.workers == 1;
  if (all_wait && spec.training.pipeline_depth == 1) return;
  diagnostics.Report(draft.KeySource("consistency.max_staleness.bound"),
                     "block with a bound of 0 needs one server, or one worker, and "
                     "training.pipeline_depth 1: elsewhere no round would ever close; hardsync is "
                     "what has no staleness");
}

void CheckGuard(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kAction = "consistency.max_staleness.action";
  constexpr const char* kBound = "consistency.max_staleness.bound";
  using Action = StalenessGuardSpec::Action;
  const StalenessGuardSpec& guard = draft.spec.consistency.max_staleness;
  if (!draft.IsUsable(kAction) || !draft.IsUsable(kBound) || guard.action == Action::kNone) return;
  if (!draft.IsGiven(kBound)) {
    diagnostics.Report(draft.KeySource(kAction),
                       "max_staleness needs \"bound\", the largest staleness a gradient may have");
  } else if (guard.action == Action::kScale && guard.bound == 0) {
    diagnostics.Report(draft.KeySource(kBound),
                       "scale needs a bound of at least 1: gradients are multiplied by "
                       "bound/staleness");
  } else if (guard.action == Action::kBlock && draft.spec.consistency.traits().keeps_pace) {
    diagnostics.Report(draft.KeySource(kAction),
                       fmt::format("block makes rounds wait for gradients, and under {} whoever is "
                                   "to bring one may wait for those that the round holds back; "
                                   "use reject, scale or drop",
                                   RowOf(draft.spec.consistency.policy).name));
  } else if (guard.action == Action::kBlock && guard.bound == 0) {
    CheckThatAllWait(draft, diagnostics);
  }
}

/// Checks that nothing needs the weights of one version, or an order of gradients, where gradients
/// are added in place.
void CheckInPlace(Draft draft, Diagnostics diagnostics) {
  const RunSpec& spec = draft.spec;
  if (!draft.IsUsable("consistency.policy") || !spec.consistency.traits().adds_in_place()) return;
  const std::string_view policy = RowOf(spec.consistency.policy).name;
  const auto report = [&](const char* path, const std::string& why) {
    if (draft.IsUsable(path)) {
      diagnostics.Report(draft.KeySource(path),
                         fmt::format("{} adds gradients to the weights in place: {}", policy, why));
    }
  };
  const bool has_outer = RowOf(spec.worker.algorithm).has_local_weights;
  const char* const kind = has_outer ? "worker.outer.kind" : "optimizer.kind";
  const RuleRow& rule = RowOf(spec.server_optimizer().kind);
  if (!rule.adds()) {
    report(kind, fmt::format("several threads do so at once, and {} needs more than an addition; "
                             "use {}",
                             rule.name, RowOf(RuleKind::kSgd).name));
  }
  const ScalingRow& scaling = RowOf(spec.optimizer.staleness_scaling);
  if (scaling.uses_base_weights || scaling.keeps_history) {
    report("optimizer.staleness_scaling",
           fmt::format("the weights that {} compares are not kept", scaling.name));
  }
  if (spec.consistency.max_staleness.action == StalenessGuardSpec::Action::kBlock) {
    report("consistency.max_staleness.action",
           "no gradient is held back for others; use reject, scale or drop");
  }
  if (spec.readers.versions_kept > 1) {
    report("readers.versions_kept", "no version but the newest can be read; leave it at 1");
  }
}

void CheckPipeline(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "training.pipeline_depth";
  if (!draft.IsUsable(kPath) || !draft.IsUsable("consistency.policy")) return;
  const ConsistencySpec& consistency = draft.spec.consistency;
  if (!consistency.traits().one_per_member) return;
  if (draft.spec.training.pipeline_depth == 1) return;
  if (draft.spec.worker.has_free_lanes()) return;  // They need the depth, and another policy.
  diagnostics.Report(
      draft.KeySource(kPath),
      fmt::format("training.pipeline_depth must be 1, not {}, with "
                  "consistency.policy {}, whose gradients are never stale",
                  draft.spec.training.pipeline_depth, RowOf(consistency.policy).name));
}

void CheckSchedule(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "optimizer.schedule.at_epochs";
  const ScheduleSpec& schedule = draft.spec.optimizer.schedule;
  if (schedule.kind != ScheduleSpec::Kind::kStep || !draft.IsUsable(kPath)) return;
  if (schedule.at_epochs.empty()) {
    diagnostics.Report(draft.KeySource("optimizer.schedule.kind"),
                       "schedule step needs \"at_epochs\", a list of rising epochs");
    return;
  }
  for (size_t i = 1; i < schedule.at_epochs.size(); ++i) {
    if (schedule.at_epochs[i] > schedule.at_epochs[i - 1]) continue;
    diagnostics.Report(draft.ItemSource(kPath, i),
                       fmt::format("at_epochs must rise, and {} comes after {}",
                                   schedule.at_epochs[i], schedule.at_epochs[i - 1]));
    return;
  }
}

/// Checks what follows from models and examples that the workers bring.
void CheckSources(Draft draft, Diagnostics diagnostics) {
  const RunSpec& spec = draft.spec;
  if (!draft.IsUsable("model.from") || !draft.IsUsable("data.from")) return;
  if (spec.model_from == SuppliedBy::kWorkers && spec.data.from == SuppliedBy::kSettings) {
    diagnostics.Report(draft.KeySource("data.from"),
                       "model.from workers needs data.from workers: nobody else knows what "
                       "examples their model takes");
  }
  if (!draft.IsUsable("training.work") || !draft.IsUsable("data.examples")) return;
  constexpr uint64_t kHandedOutMax = std::numeric_limits<uint32_t>::max();
  if (spec.data.from == SuppliedBy::kWorkers && !spec.chooses_own_work() &&
      spec.data.examples > kHandedOutMax) {
    diagnostics.Report(draft.KeySource("data.examples"),
                       fmt::format("at most {} examples can be handed out; with training.work own "
                                   "there may be more",
                                   kHandedOutMax));
  }
}

void CheckTarget(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "training.target_accuracy";
  if (!draft.IsUsable(kPath) || draft.spec.training.target_accuracy == 0) return;
  if (draft.IsUsable("evaluation.by") && draft.spec.evaluation.by == EvaluationSpec::By::kNobody) {
    diagnostics.Report(
        draft.KeySource(kPath),
        "target_accuracy is looked for in evaluations, and with evaluation.by nobody "
        "there are none");
    return;
  }
  if (draft.IsUsable("model.loss") && draft.spec.model.loss == ModelSpec::Loss::kMse) {
    diagnostics.Report(draft.KeySource(kPath),
                       "target_accuracy is never reached with model.loss mse, which knows no "
                       "classes and so no accuracy");
  }
  constexpr const char* kEvaluations = "evaluation.every_epochs";
  constexpr const char* kSaves = "model.save_every_epochs";
  if (!draft.IsUsable(kEvaluations) || draft.spec.evaluation.every_epochs > 0) return;
  if (!draft.IsUsable(kSaves) || draft.spec.model_files.save_every_epochs > 0) return;
  diagnostics.Report(draft.KeySource(kPath),
                     "target_accuracy is looked for in evaluations, and with "
                     "evaluation.every_epochs and model.save_every_epochs 0 there are none before "
                     "the end");
}

void CheckDataPath(Draft draft, Diagnostics diagnostics) {
  const bool needs_path = draft.spec.data.format != DataSpec::Format::kSynthetic;
  if (!needs_path || !draft.spec.data.path.empty() || !draft.IsUsable("data.path")) return;
  const bool is_given = draft.IsGiven("data.path");
  diagnostics.Report(draft.KeySource(is_given ? "data.path" : "data.format"),
                     "files need \"path\", the directory they are in");
}

void CheckLabelColumns(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "data.label_columns";
  const DataSpec& data = draft.spec.data;
  if (data.format != DataSpec::Format::kCsv || !draft.IsUsable(kPath)) return;
  if (data.header == DataSpec::Header::kAbsent && !data.label_columns.empty()) {
    diagnostics.Report(draft.KeySource(kPath),
                       "label_columns are names of a header, and data.header is false; without "
                       "names, the label is the last column");
  }
  const bool has_classes = draft.spec.model.loss == ModelSpec::Loss::kCrossEntropy;
  if (has_classes && data.label_columns.size() > 1 && draft.IsUsable("model.loss")) {
    diagnostics.Report(draft.ItemSource(kPath, 1),
                       "cross_entropy needs one column with a class; several are targets of "
                       "model.loss mse");
  }
  std::set<std::string> seen;
  for (size_t i = 0; i < data.label_columns.size(); ++i) {
    if (seen.insert(data.label_columns[i]).second) continue;
    diagnostics.Report(draft.ItemSource(kPath, i),
                       fmt::format("column \"{}\" is there twice", data.label_columns[i]));
  }
}

void CheckServer(Draft draft, size_t index, std::map<std::string, size_t>& seen,
                 Diagnostics diagnostics) {
  const std::string& text = draft.spec.cluster.servers[index];
  const Source source = draft.ItemSource("cluster.servers", index);
  const std::optional<ServerAddress> address = ParseServerAddress(text);
  if (!address) {
    diagnostics.Report(source, fmt::format("server {}", AddressError(text)));
    return;
  }
  if (!seen.emplace(address->ToString(), index).second) {
    diagnostics.Report(source, fmt::format("server \"{}\" is there twice", text));
    return;
  }
  if (!draft.IsUsable("security.plaintext") || !draft.IsUsable("security.mtls.ca")) return;
  if (draft.spec.security.may_leave_machine()) return;
  if (!address->IsLoopback()) {
    diagnostics.Report(source,
                       fmt::format("server \"{}\" is not on loopback, and traffic is not "
                                   "encrypted; set security.mtls (psctl certs init makes "
                                   "certificates), or security: {{plaintext: accept_the_risk}} if "
                                   "the network is trusted",
                                   text));
  }
}

void CheckServers(Draft draft, Diagnostics diagnostics) {
  if (!draft.IsUsable("cluster.servers")) return;
  std::map<std::string, size_t> seen;
  for (size_t i = 0; i < draft.spec.cluster.servers.size(); ++i) {
    CheckServer(draft, i, seen, diagnostics);
  }
}

/// Checks that there is an authority if there are certificates or tokens: they are worth nothing
/// without an authority that both ends know.
void CheckSecurity(Draft draft, Diagnostics diagnostics) {
  const SecuritySpec& security = draft.spec.security;
  if (!draft.IsUsable("security.mtls.ca") || security.is_encrypted()) return;
  const std::pair<const char*, const std::string&> others[] = {
      {"security.mtls.certificate", security.mtls.certificate},
      {"security.mtls.key", security.mtls.key},
      {"security.token", security.token}};
  for (const auto& [path, value] : others) {
    if (value.empty() || !draft.IsUsable(path)) continue;
    diagnostics.Report(
        draft.KeySource(path),
        fmt::format("{} needs security.mtls.ca: without it nothing is encrypted", path));
  }
}

/// Returns whether the keys describe a net whose shapes can be checked; reports what is missing.
bool HasModel(Draft draft, Diagnostics diagnostics) {
  const ModelSpec& model = draft.spec.model;
  for (const char* path : {"model.preset", "model.input", "model.layers"}) {
    if (!draft.IsUsable(path)) return false;
  }
  if (!model.input.empty() && !model.layers.empty()) return true;
  if (model.input.empty() && model.layers.empty()) {
    diagnostics.Report(draft.KeySource("model.preset"),
                       fmt::format("model needs \"preset\" ({}), or \"input\" and \"layers\"",
                                   fmt::join(PresetNames(), ", ")));
  } else if (model.input.empty()) {
    diagnostics.Report(draft.KeySource("model.layers"),
                       "layers need \"input\": channels, height and width of one example");
  } else {
    diagnostics.Report(draft.KeySource("model.input"), "input needs \"layers\"");
  }
  return false;
}

void CheckExamplesFit(Draft draft, const NetShapes& net, Diagnostics diagnostics) {
  if (!draft.IsUsable("data.from") || !draft.IsUsable("data.format")) return;
  if (draft.spec.data.from == SuppliedBy::kWorkers) return;
  const std::optional<KnownExamples> known = FindKnownExamples(draft.spec.data.format);
  if (!known) return;  // Files say it themselves; workers compare them.
  const bool is_preset = !draft.spec.model.preset.empty();
  const ExampleShape input = net.input();
  if (!known->shape && std::min(input.height, input.width) < kGeneratedSideMin) {
    diagnostics.Report(
        draft.KeySource(is_preset ? "model.preset" : "model.input"),
        fmt::format("the model takes {} examples, and generated images are at least {} high and "
                    "wide; name a data.format with files",
                    ToText(input), kGeneratedSideMin));
  }
  if (known->shape && input != *known->shape) {
    const FieldValue format = FindField("data.format")->get(draft.spec);
    diagnostics.Report(
        draft.KeySource(is_preset ? "model.preset" : "model.input"),
        fmt::format("the model takes {} examples, and data of format {} are {}", ToText(input),
                    WriteField(FindField("data.format")->type, format), ToText(*known->shape)));
  }
  if (net.outputs() != known->classes) {
    diagnostics.Report(draft.ItemSource("model.layers", draft.spec.model.layers.size() - 1),
                       fmt::format("the model ends in {} classes, and the data have {}",
                                   net.outputs(), known->classes));
  }
}

void CheckShards(Draft draft, const NetShapes& net, Diagnostics diagnostics) {
  if (!draft.IsUsable("cluster.servers") || !draft.IsUsable("wire.push_bytes_max")) return;
  for (const char* path : {"optimizer.kind", "worker.algorithm", "worker.outer.kind"}) {
    if (!draft.IsUsable(path)) return;
  }
  const auto shards = static_cast<uint32_t>(draft.spec.cluster.servers.size());
  const RuleRow& rule = RowOf(draft.spec.server_optimizer().kind);
  const absl::StatusOr<ShardMap> map = ShardMap::Cut(net.layout, shards, CutOptionsOf(draft.spec));
  if (!map.ok()) {
    const absl::string_view message = map.status().message();
    diagnostics.Report(
        draft.KeySource("cluster.servers"),
        fmt::format(
            "{}{}", std::string_view(message.data(), message.size()),
            rule.measures_tensors ? fmt::format(": {} measures whole tensors", rule.name) : ""));
    return;
  }
  size_t largest = 0;
  for (uint32_t shard = 0; shard < shards; ++shard) {
    largest = std::max(largest, map->range(ShardId{shard}).size() * sizeof(float));
  }
  const size_t push_bytes_max = draft.spec.wire.push_bytes_max;
  if (push_bytes_max > 0 && push_bytes_max < largest) {
    diagnostics.Report(draft.KeySource("wire.push_bytes_max"),
                       fmt::format("push_bytes_max must hold one push, {} bytes, or none would "
                                   "ever be taken",
                                   largest));
  }
}

void CheckModel(Draft draft, Diagnostics diagnostics) {
  if (!draft.IsUsable("model.from") || draft.spec.model_from == SuppliedBy::kWorkers) return;
  if (!HasModel(draft, diagnostics)) return;
  const auto shapes = InferShapes(draft.spec.model);
  if (const auto* error = std::get_if<ShapeError>(&shapes)) {
    const Source source = error->layer < 0 ? draft.KeySource("model.input")
                                           : draft.ItemSource("model.layers", error->layer);
    diagnostics.Report(source, error->Text());
    return;
  }
  const NetShapes& net = std::get<NetShapes>(shapes);
  CheckExamplesFit(draft, net, diagnostics);
  CheckShards(draft, net, diagnostics);
  CheckTensorOptions(draft, net.layout, diagnostics);
}

void CheckTransport(Draft draft, Diagnostics diagnostics) {
  const WireSpec& wire = draft.spec.wire;
  if (wire.transport != WireSpec::Transport::kShm) return;
  for (const auto& [path, codec] : {std::pair("wire.push_codec", wire.push_codec),
                                    std::pair("wire.pull_codec", wire.pull_codec)}) {
    if (!draft.IsUsable(path) || codec == Encoding::kFp32) continue;
    diagnostics.Report(
        draft.KeySource(path),
        fmt::format("wire.transport shm carries fp32 alone; use auto or unix with {}", path));
  }
  constexpr const char* kFragments = "worker.fragments";
  if (draft.IsUsable(kFragments) && draft.spec.worker.fragments() > 1) {
    diagnostics.Report(draft.KeySource(kFragments),
                       "wire.transport shm does not carry fragments; use auto or unix");
  }
}

}  // namespace

void CheckRun(const RunDraft& draft, DiagnosticList& diagnostics) {
  CheckModel(draft, diagnostics);
  CheckSources(draft, diagnostics);
  CheckEpochs(draft, diagnostics);
  CheckDataPath(draft, diagnostics);
  CheckLabelColumns(draft, diagnostics);
  CheckPolicy(draft, diagnostics);
  CheckStages(draft, diagnostics);
  CheckGuard(draft, diagnostics);
  CheckInPlace(draft, diagnostics);
  CheckAllReduce(draft, diagnostics);
  CheckTree(draft, diagnostics);
  CheckDurability(draft, diagnostics);
  CheckWorkerLoss(draft, diagnostics);
  CheckStart(draft, diagnostics);
  CheckPipeline(draft, diagnostics);
  CheckWorker(draft, diagnostics);
  CheckSchedule(draft, diagnostics);
  CheckTarget(draft, diagnostics);
  CheckServers(draft, diagnostics);
  CheckSecurity(draft, diagnostics);
  CheckTransport(draft, diagnostics);
}

}  // namespace slipstream
