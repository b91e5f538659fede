#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_RUN_GROUPS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_RUN_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deploy/psctl/comparison/mean_interval.h"
#include "deploy/psctl/comparison/run_record.h"

namespace slipstream {

/// Runs whose settings differ in nothing but the seed: repetitions of one experiment.
struct RunGroup {
  /// The run's name; where other groups have the same, with the settings that tell them apart.
  std::string label;

  /// At least one, in the order in which they were named.
  std::vector<RunRecord> runs;

  /// The keys of run.yaml in which the groups differ, with the values of this one. The run's name
  /// is not among them.
  std::vector<std::pair<std::string, std::string>> differences;

  const RunSpec& settings() const { return runs.front().settings; }
  std::set<uint64_t> seeds() const;

  /// How many have not failed.
  size_t finished() const;

  /// The mean of figure `figure` over the runs that have it and have not failed; absent if there
  /// are none.
  std::optional<MeanInterval> Mean(size_t figure) const;

  /// "epochs", or "2 target_accuracy, 1 epochs" where the runs differ.
  std::string EndedBy() const;
};

/// Groups runs in the order of each group's first. Settings that say only where files go, what is
/// logged, who may connect and what happens after the run do not count.
std::vector<RunGroup> GroupRuns(const std::vector<RunRecord>& runs);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_RUN_GROUPS_H_
