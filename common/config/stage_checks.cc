#include "common/config/stage_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/run/algorithm_rows.h"
#include "common/run/policy_rows.h"

namespace slipstream {
namespace {

using Action = StalenessGuardSpec::Action;

constexpr const char* kPath = "consistency.before";

/// Checks that each policy has epochs of its own.
void CheckEpochs(const RunDraft& draft, DiagnosticList& diagnostics) {
  const std::vector<PolicyStage>& stages = draft.spec.policies_before;
  for (size_t i = 0; i < stages.size(); ++i) {
    const uint32_t begin = i == 0 ? 0 : stages[i - 1].until_epoch;
    if (stages[i].until_epoch <= begin) {
      diagnostics.Report(draft.ItemSource(kPath, i),
                         fmt::format("until_epoch must rise, and {} comes after {}",
                                     stages[i].until_epoch, begin));
      return;
    }
  }
  const uint32_t end = stages.back().until_epoch;
  const uint32_t epochs = draft.spec.training.epochs;
  if (!draft.IsUsable("training.epochs") || end < epochs) return;
  diagnostics.Report(draft.ItemSource(kPath, stages.size() - 1),
                     fmt::format("until_epoch must be below training.epochs, {}, not {}: "
                                 "consistency.policy would have no epoch left",
                                 epochs, end));
}

/// Checks that no policy whose workers step with all shards at one version comes after one under
/// which versions drift apart.
void CheckOrder(const RunDraft& draft, DiagnosticList& diagnostics) {
  const std::vector<PolicyStage> stages = draft.spec.stages();
  for (size_t i = 1; i < stages.size(); ++i) {
    const PolicyRow& row = RowOf(stages[i].consistency.policy);
    const PolicyRow& before = RowOf(stages[i - 1].consistency.policy);
    if (!row.traits.in_step || before.traits.in_step) continue;
    const bool is_last = i + 1 == stages.size();
    diagnostics.Report(
        is_last ? draft.KeySource("consistency.policy") : draft.ItemSource(kPath, i),
        fmt::format("{0} cannot come after {1}: its workers need all shards at one version, and "
                    "under {1} versions drift apart",
                    row.name, before.name));
    return;
  }
}

void CheckWorkers(const RunDraft& draft, size_t place, DiagnosticList& diagnostics) {
  if (!draft.IsUsable("cluster.workers")) return;
  const ConsistencySpec& consistency = draft.spec.policies_before[place].consistency;
  const double workers = draft.spec.cluster.workers;
  for (const auto& [key, value] : ParametersOf(RowOf(consistency.policy), consistency.parameters)) {
    const auto row = std::ranges::find(kPolicyParameters, key, &ParameterRow::key);
    if (row->Fits(value, workers)) continue;
    diagnostics.Report(draft.ItemSource(kPath, place), DescribeMisfit(*row, value, workers));
  }
}

/// Checks that a policy that adds in place is the only one: others make versions.
void CheckInPlace(const RunDraft& draft, DiagnosticList& diagnostics) {
  const std::vector<PolicyStage> stages = draft.spec.stages();
  const auto in_place = std::ranges::find_if(
      stages, [](const PolicyStage& stage) { return stage.consistency.traits().adds_in_place(); });
  if (in_place == stages.end()) return;
  const size_t place = static_cast<size_t>(in_place - stages.begin());
  const bool is_last = place + 1 == stages.size();
  diagnostics.Report(
      is_last ? draft.KeySource("consistency.policy") : draft.ItemSource(kPath, place),
      fmt::format(
          "{} must be the run's only policy: it adds gradients to the weights in place, and "
          "the others make versions",
          RowOf(in_place->consistency.policy).name));
}

/// Checks that no policy under which workers make the weights comes before another one.
void CheckAllReduceBefore(const RunDraft& draft, size_t place, DiagnosticList& diagnostics) {
  const PolicyRow& row = RowOf(draft.spec.policies_before[place].consistency.policy);
  if (!row.traits.workers_make_weights()) return;
  diagnostics.Report(draft.ItemSource(kPath, place),
                     fmt::format("{} must be the run's only policy: under the others the servers "
                                 "make the weights",
                                 row.name));
}

void CheckBesideOthers(const RunDraft& draft, size_t place, DiagnosticList& diagnostics) {
  const PolicyRow& row = RowOf(draft.spec.policies_before[place].consistency.policy);
  const auto report = [&](const std::string& message) {
    diagnostics.Report(draft.ItemSource(kPath, place), message);
  };
  constexpr const char* kDepth = "training.pipeline_depth";
  const WorkerSpec& worker = draft.spec.worker;
  if (row.traits.waits_for_members && worker.has_free_lanes()) {
    report(
        fmt::format("worker.lanes free does not go with {}, under which workers wait for others; "
                    "use softsync or async",
                    row.name));
  } else if (row.traits.one_per_member && draft.IsUsable(kDepth) &&
             draft.spec.training.pipeline_depth > 1) {
    report(
        fmt::format("{} needs training.pipeline_depth 1: its gradients are never stale", row.name));
  }
  if (row.traits.keeps_pace && draft.spec.consistency.max_staleness.action == Action::kBlock) {
    report(
        fmt::format("{} does not go with max_staleness block, which holds for all policies of "
                    "the run; use reject, scale or drop",
                    row.name));
  }
  if (row.traits.waits_for_members && worker.pushes_per_fetch() > 1) {
    report(
        fmt::format("fetch_every above push_every does not go with {}: there each push must fetch "
                    "weights; use softsync or async",
                    row.name));
  }
  if (row.traits.work == PolicyTraits::Work::kRounds && worker.steps_by_speed) {
    report(
        fmt::format("{} names the mini-batches of each push, so that steps_by_speed has no "
                    "force; use softsync, async or ssp",
                    row.name));
  }
  const AlgorithmRow& algorithm = RowOf(worker.algorithm);
  if (draft.IsUsable("worker.algorithm") && !algorithm.why_policy.empty() &&
      algorithm.policy != row.kind) {
    report(fmt::format("worker.algorithm {} needs consistency.policy {} from the first epoch on",
                       algorithm.name, RowOf(algorithm.policy).name));
  }
}

}  // namespace

std::string DescribeMisfit(const ParameterRow& row, double value, double workers) {
  const bool is_below = row.limit == ParameterRow::Limit::kBelowWorkers;
  return fmt::format("{} must be {} the number of workers, {}, not {}", row.key,
                     is_below ? "below" : "at most", workers, value);
}

void CheckStages(const RunDraft& draft, DiagnosticList& diagnostics) {
  const size_t stages = draft.spec.policies_before.size();
  if (!draft.IsUsable(kPath) || stages == 0) return;
  CheckEpochs(draft, diagnostics);
  if (draft.IsUsable("consistency.policy")) {
    CheckOrder(draft, diagnostics);
    CheckInPlace(draft, diagnostics);
  }
  for (size_t i = 0; i < stages; ++i) {
    CheckWorkers(draft, i, diagnostics);
    CheckAllReduceBefore(draft, i, diagnostics);
    CheckBesideOthers(draft, i, diagnostics);
  }
}

}  // namespace slipstream
