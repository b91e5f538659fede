#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_GROUPS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_GROUPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deploy/psctl/compare/mean_interval.h"
#include "deploy/psctl/compare/run_record.h"

namespace slipstream {

/// Repetitions of one experiment: runs that differ only in the seed, and in settings that GroupRuns
/// ignores.
struct RunGroup {
  /// The run's name. If other groups have the same name, the settings in which they differ follow.
  std::string label;

  /// The runs, at least one, in the order in which they were named.
  std::vector<RunRecord> runs;

  /// The keys of run.yaml in which the groups differ, except the run's name, with this group's
  /// values.
  std::vector<std::pair<std::string, std::string>> differences;

  /// Returns the settings of the first run.
  const RunSpec& settings() const { return runs.front().settings; }
  std::set<uint64_t> seeds() const;

  /// Returns the number of runs that have not failed.
  size_t finished() const;

  /// Returns the mean of kRunFigures[figure] over the runs that have it and have not failed; absent
  /// if there are none. Runs that diverged count in the accuracy, and in other figures if all did:
  /// those of a shorter run say nothing about the others.
  std::optional<MeanInterval> Mean(size_t figure) const;

  /// Returns how the runs ended: "epochs", or "2 epochs, 1 diverged in epoch 3" if they differ.
  std::string EndedBy() const;
};

/// Groups the runs; groups are in the order of their first runs. Ignores settings that decide only
/// where models are saved, what is logged, who may connect and what happens after the run.
std::vector<RunGroup> GroupRuns(const std::vector<RunRecord>& runs);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_GROUPS_H_
