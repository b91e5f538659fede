#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_PLOT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_PLOT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/psctl/compare/run_curves.h"

namespace slipstream {

/// The data of one group of runs, which a plot shows in one colour.
struct PlotGroup {
  /// The label in the legend, and what follows it: how the runs ended, if that matters.
  std::string label;
  std::string note = "";
  std::vector<RunCurves> runs;

  /// The number of gradients by staleness, over all runs of the group.
  std::vector<uint64_t> staleness;
};

/// Returns an SVG picture with four charts: test accuracy over time and over epochs (test loss if
/// no run has an accuracy), the histogram of staleness with its cumulative distribution, and
/// examples per second over time. Each run has its own line; staleness is shown per group. The
/// A run that diverged ends with a cross. The axis of staleness ends where its distributions do,
/// see DistributionEnd, and says what lies beyond. The picture needs no other file, and follows the
/// reader's choice of a light or a dark page. REQUIRES: there is at least one group.
std::string PlotRuns(const std::vector<PlotGroup>& groups);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_RUN_PLOT_H_
