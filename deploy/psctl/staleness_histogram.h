#ifndef SLIPSTREAM_DEPLOY_PSCTL_STALENESS_HISTOGRAM_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STALENESS_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace slipstream {

struct HistogramStyle {
  /// Lines at most; neighbouring values share a line where there are more of them. At least 1.
  size_t lines_max = 16;

  /// Length of the longest bar.
  size_t bar_width = 40;
};

/// One line per staleness: the value (or range), the count, its share, the share of all up to it,
/// and a bar. `counts[σ]` pushes
/// had staleness σ, the last bucket holding everything above it too; `max` is the largest σ seen.
/// Empty if nothing was counted.
std::string FormatHistogram(std::span<const uint64_t> counts, uint64_t max,
                            const HistogramStyle& style = {});

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STALENESS_HISTOGRAM_H_
