#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_VIEW_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "deploy/psctl/compare/run_groups.h"

namespace slipstream {

/// Returns a table with a line for each group of runs: the name, the number of seeds, the policy,
/// how the runs ended, and the mean of each figure with its 95 % confidence interval, such as
/// "97.31 ± 0.24%". Failed runs do not count in means, and those that diverged as RunGroup says. If
/// only some of the other runs have a figure, "(2 of 3)" follows the mean. The last column, if any,
/// has the settings in which the groups differ.
std::string ComparisonTable(const std::vector<RunGroup>& groups);

/// Returns an object with `groups`. Each has label, policy, settings (those in which the groups
/// differ, as in run.yaml), ended_by (the number of runs by reason), each figure as {mean,
/// interval_95 (its half width; null for one run), count} or null, and runs: directory, seed,
/// ended_by, diverged (where it did: epoch and updates; else null) and the figures of each.
nlohmann::ordered_json ComparisonJson(const std::vector<RunGroup>& groups);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_VIEW_H_
