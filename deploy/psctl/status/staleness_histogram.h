#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_STALENESS_HISTOGRAM_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_STALENESS_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace slipstream {

/// Returns one more than the staleness that 99.9 % of the counted gradients do not exceed, of which
/// `counts[σ]` have σ; 0 if none was counted. What lies beyond is so rare that showing it by itself
/// would only press the rest together.
size_t DistributionEnd(std::span<const uint64_t> counts);

struct HistogramStyle {
  /// The largest number of lines, at least 1. Neighbouring values share a line where there are more
  /// values.
  size_t lines_max = 16;

  /// The length of the longest bar, in characters.
  size_t bar_width = 40;
};

/// Returns one line per staleness: the value (or range), the count, its share, the share of all up
/// to it, and a bar. `counts[σ]` pushes had staleness σ, and the last bucket also holds everything
/// above; `max` is the largest σ seen. If there are more values than lines, the last line has all
/// beyond DistributionEnd. Empty if nothing was counted.
std::string FormatHistogram(std::span<const uint64_t> counts, uint64_t max,
                            const HistogramStyle& style = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_STALENESS_HISTOGRAM_H_
