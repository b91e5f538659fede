#include "common/config/tree_checks.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "common/run/algorithm_rows.h"
#include "common/run/optimizer_rows.h"
#include "common/run/policy_rows.h"

namespace slipstream {
namespace {

/// Checks that under every policy of the run a combined push may count as its parts.
void CheckPolicies(const RunDraft& draft, DiagnosticList& diagnostics) {
  const auto report = [&](const Source& source, PolicyKind policy) {
    diagnostics.Report(
        source, fmt::format("cluster.tree needs consistency.policy hardsync, softsync or async: "
                            "under {} an update depends on when each worker's own push comes",
                            RowOf(policy).name));
  };
  const PolicyKind last = draft.spec.consistency.policy;
  if (draft.IsUsable("consistency.policy") && !RowOf(last).traits.takes_combined) {
    report(draft.KeySource("consistency.policy"), last);
  }
  constexpr const char* kBefore = "consistency.before";
  if (!draft.IsUsable(kBefore)) return;
  for (size_t i = 0; i < draft.spec.policies_before.size(); ++i) {
    const PolicyKind policy = draft.spec.policies_before[i].consistency.policy;
    if (!RowOf(policy).traits.takes_combined) report(draft.ItemSource(kBefore, i), policy);
  }
}

}  // namespace

void CheckTree(const RunDraft& draft, DiagnosticList& diagnostics) {
  constexpr const char* kFanout = "cluster.tree.fanout";
  const RunSpec& run = draft.spec;
  if (!draft.IsUsable(kFanout) || run.cluster.tree.fanout == 0) return;
  if (run.cluster.tree.fanout == 1) {
    diagnostics.Report(draft.KeySource(kFanout),
                       "fanout must be at least 2, the workers whose pushes become one; 0 is for "
                       "no aggregators");
  }
  CheckPolicies(draft, diagnostics);
  if (draft.IsUsable("worker.algorithm") &&
      !RowOf(run.worker.algorithm).pushes_gradients_of_pulled()) {
    diagnostics.Report(draft.KeySource("worker.algorithm"),
                       fmt::format("cluster.tree needs worker.algorithm gradient: with {} workers "
                                   "push what their own steps gave, and no mean of it is taken",
                                   RowOf(run.worker.algorithm).name));
  }
  constexpr const char* kScaling = "optimizer.staleness_scaling";
  const ScalingRow& scaling = RowOf(run.optimizer.staleness_scaling);
  if (draft.IsUsable(kScaling) && scaling.uses_base_weights) {
    diagnostics.Report(draft.KeySource(kScaling),
                       fmt::format("cluster.tree needs another staleness_scaling: {} corrects each "
                                   "gradient by itself, and aggregators send means",
                                   scaling.name));
  }
}

}  // namespace slipstream
