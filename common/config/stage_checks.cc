#include "common/config/stage_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

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
  if (draft.IsUsable("consistency.policy")) CheckOrder(draft, diagnostics);
  for (size_t i = 0; i < stages; ++i) CheckWorkers(draft, i, diagnostics);
}

}  // namespace slipstream
