#include "common/config/worker_loss_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/config/scalar_types.h"
#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

/// Checks that some policy of the run waits for members, or nobody would wait for a lost one.
void CheckThatMembersAreAwaited(const RunDraft& draft, DiagnosticList& diagnostics) {
  for (const char* key : {"consistency.policy", "consistency.before"}) {
    if (!draft.IsUsable(key)) return;
  }
  const std::vector<PolicyStage> stages = draft.spec.stages();
  const bool is_awaited = std::ranges::any_of(stages, [](const PolicyStage& stage) {
    return stage.consistency.traits().waits_for_members;
  });
  if (is_awaited) return;
  ChoiceType waiting;
  for (const PolicyRow& row : kPolicyRows) {
    if (row.traits.waits_for_members) waiting.names.emplace_back(row.name);
  }
  diagnostics.Report(
      draft.KeySource("cluster.on_worker_loss"),
      fmt::format("cluster.on_worker_loss wait does not go with consistency.policy "
                  "{}: no worker is waited for; use {}",
                  RowOf(draft.spec.consistency.policy).name, DescribeScalar(waiting)));
}

}  // namespace

void CheckWorkerLoss(const RunDraft& draft, DiagnosticList& diagnostics) {
  const ClusterSpec& cluster = draft.spec.cluster;
  constexpr const char* kLeast = "cluster.min_workers";
  if (draft.IsUsable(kLeast) && draft.IsUsable("cluster.workers") &&
      cluster.min_workers > cluster.workers) {
    diagnostics.Report(draft.KeySource(kLeast),
                       fmt::format("min_workers must be at most {}, the number of workers at the "
                                   "start (cluster.workers), not {}",
                                   cluster.workers, cluster.min_workers));
  }
  constexpr const char* kOnLoss = "cluster.on_worker_loss";
  if (!draft.IsUsable(kOnLoss) || cluster.on_worker_loss == ClusterSpec::OnWorkerLoss::kShrink) {
    return;
  }
  CheckThatMembersAreAwaited(draft, diagnostics);
}

}  // namespace slipstream
