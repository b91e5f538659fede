#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_VIEW_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deploy/psctl/comparison/run_groups.h"

namespace slipstream {

/// A line for each group of runs: how many seeds, the policy, how the runs ended, and the mean of
/// each figure with its interval of 95 %, as "97.31 ± 0.24%". A failed run
/// has no part in means. A figure that other runs of a group lack says of how many it is.
std::string ComparisonTable(const std::vector<RunGroup>& groups);

/// `groups`: for each its label, policy, settings (those in which the groups differ, as in
/// run.yaml), ended_by (how many runs ended so), for each figure {mean, interval_95 (null for one
/// run), count} or null, and runs: directory, seed, ended_by and the figures of each.
nlohmann::ordered_json ComparisonJson(const std::vector<RunGroup>& groups);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_VIEW_H_
