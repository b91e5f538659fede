#include "common/config/run_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/config/combination_checks.h"
#include "common/config/epoch_checks.h"
#include "common/config/field_table.h"
#include "common/config/server_address.h"
#include "common/config/stage_checks.h"
#include "common/config/tensor_options_table.h"
#include "common/config/worker_checks.h"
#include "common/config/worker_loss_checks.h"
#include "common/layout/shard_map.h"
#include "common/model/net_shapes.h"
#include "common/model/presets.h"
#include "common/settings/known_examples.h"
#include "common/settings/policy_rows.h"
#include "common/settings/shards.h"

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
  } else if (guard.action == Action::kBlock && guard.bound == 0 &&
             !draft.spec.consistency.traits().keeps_pace) {
    CheckThatAllWait(draft, diagnostics);
  }
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

/// Checks that the examples of an epoch can be handed out.
void CheckExamples(Draft draft, Diagnostics diagnostics) {
  const RunSpec& spec = draft.spec;
  for (const char* path : {"model.from", "data.from", "training.work", "data.examples"}) {
    if (!draft.IsUsable(path)) return;
  }
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
  if (!draft.IsUsable("evaluation.by") || draft.spec.evaluation.by == EvaluationSpec::By::kNobody) {
    return;  // A combination by itself.
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

void CheckHttp(Draft draft, Diagnostics diagnostics) {
  const std::string& text = draft.spec.http.listen;
  if (!draft.IsUsable("http.listen") || text == HttpSpec::kNone) return;
  const std::optional<ServerAddress> address = ParseAddressToListenOn(text);
  if (!address.has_value()) {
    return diagnostics.Report(
        draft.KeySource("http.listen"),
        fmt::format("http.listen is {}; or \"none\" for no such port", AddressError(text)));
  }
  if (!draft.IsUsable("security.plaintext") || !draft.IsUsable("security.mtls.ca")) return;
  if (address->IsLoopback() || draft.spec.security.may_leave_machine()) return;
  diagnostics.Report(
      draft.KeySource("http.listen"),
      fmt::format("\"{}\" lets everybody on the network see the run, as nothing is encrypted; set "
                  "security.mtls (psctl certs init makes certificates), or security: {{plaintext: "
                  "accept_the_risk}} if the network is trusted",
                  text));
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

void CheckFanout(Draft draft, Diagnostics diagnostics) {
  constexpr const char* kPath = "cluster.tree.fanout";
  if (!draft.IsUsable(kPath) || draft.spec.cluster.tree.fanout != 1) return;
  diagnostics.Report(draft.KeySource(kPath),
                     "fanout must be at least 2, the workers whose pushes become one; 0 is for no "
                     "aggregators");
}

}  // namespace

void CheckRun(const RunDraft& draft, DiagnosticList& diagnostics) {
  CheckModel(draft, diagnostics);
  CheckExamples(draft, diagnostics);
  CheckEpochs(draft, diagnostics);
  CheckDataPath(draft, diagnostics);
  CheckLabelColumns(draft, diagnostics);
  CheckPolicy(draft, diagnostics);
  CheckStages(draft, diagnostics);
  CheckGuard(draft, diagnostics);
  CheckFanout(draft, diagnostics);
  CheckWorkerLoss(draft, diagnostics);
  CheckWorker(draft, diagnostics);
  CheckSchedule(draft, diagnostics);
  CheckTarget(draft, diagnostics);
  CheckServers(draft, diagnostics);
  CheckHttp(draft, diagnostics);
  CheckSecurity(draft, diagnostics);
  CheckCombinations(draft, diagnostics);
}

}  // namespace slipstream
