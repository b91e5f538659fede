#include "common/config/durability_checks.h"

#include <fmt/format.h>

#include <cstddef>

#include "common/run/policy_rows.h"

namespace slipstream {
namespace {

/// Returns the level of the run as the settings name it.
const char* NameOfLevel(const RunSpec& run) {
  return run.durability.keeps_log() ? "synced" : "checkpoint";
}

/// Checks that servers have versions to save under every policy of the run.
void CheckPolicies(const RunDraft& draft, DiagnosticList& diagnostics) {
  const auto check = [&](const Source& source, PolicyKind policy) {
    const PolicyTraits& traits = RowOf(policy).traits;
    if (!traits.adds_in_place() && !traits.workers_make_weights()) return;
    diagnostics.Report(
        source,
        fmt::format("durability.level {} needs another policy than {}: {}", NameOfLevel(draft.spec),
                    RowOf(policy).name,
                    traits.adds_in_place()
                        ? "versions change in place, so that no checkpoint of one can be made"
                        : "servers hold no weights"));
  };
  if (draft.IsUsable("consistency.policy")) {
    check(draft.KeySource("consistency.policy"), draft.spec.consistency.policy);
  }
  constexpr const char* kBefore = "consistency.before";
  if (!draft.IsUsable(kBefore)) return;
  for (size_t i = 0; i < draft.spec.policies_before.size(); ++i) {
    check(draft.ItemSource(kBefore, i), draft.spec.policies_before[i].consistency.policy);
  }
}

}  // namespace

void CheckDurability(const RunDraft& draft, DiagnosticList& diagnostics) {
  const RunSpec& run = draft.spec;
  if (!draft.IsUsable("durability.level") || !run.durability.saves()) return;
  CheckPolicies(draft, diagnostics);
}

}  // namespace slipstream
