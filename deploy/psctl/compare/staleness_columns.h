#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_STALENESS_COLUMNS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_STALENESS_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "deploy/psctl/compare/chart.h"
#include "deploy/psctl/compare/chart_scale.h"

namespace slipstream {

/// Columns for staleness below an end. Where there are more values than columns, neighbouring ones
/// share a column.
class StalenessColumns {
 public:
  StalenessColumns(size_t end, size_t columns_max);

  /// Returns the end of a distribution, beyond which a plot needs nothing: DistributionEnd.
  static size_t EndOf(std::span<const uint64_t> counts);

  /// Returns the end of the last column.
  size_t end() const { return width_ * count_; }

  /// Returns the axis. It begins at -0.5, so that with a width of 1 each staleness is in the middle
  /// of its column.
  ChartScale Scale(int ticks) const;

  /// Returns the share of each column, in percent of all counts.
  std::vector<double> Percent(std::span<const uint64_t> counts) const;

  /// Draws the columns of the `group`-th of `groups` beside those of the others, `factor` times as
  /// tall as their shares, and a line of the shares of all up to each column.
  void Draw(Chart& chart, const std::vector<double>& percent, size_t group, size_t groups,
            double factor, const std::string& color) const;

 private:
  const size_t width_;
  const size_t count_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_STALENESS_COLUMNS_H_
