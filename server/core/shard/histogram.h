#ifndef SLIPSTREAM_SERVER_CORE_SHARD_HISTOGRAM_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_HISTOGRAM_H_

#include <cmath>
#include <cstdint>
#include <vector>

namespace slipstream {

/// Returns the smallest value that at least a share `quantile` of the counted values do not exceed,
/// where histogram[value] is how often `value` was counted. Returns 0 if nothing was counted.
template <typename Counts>
uint64_t Percentile(const Counts& histogram, double quantile) {
  uint64_t total = 0;
  for (uint64_t count : histogram) total += count;
  const auto rank = static_cast<uint64_t>(std::ceil(quantile * static_cast<double>(total)));
  uint64_t counted = 0;
  uint64_t value = 0;
  for (uint64_t count : histogram) {
    counted += count;
    if (counted >= rank && counted > 0) return value;
    ++value;
  }
  return 0;
}

/// Returns, for every value of the histogram, the share of the counted values that are at most this
/// value; empty if nothing was counted.
template <typename Counts>
std::vector<double> Distribution(const Counts& histogram) {
  uint64_t total = 0;
  for (uint64_t count : histogram) total += count;
  std::vector<double> distribution;
  if (total == 0) return distribution;
  uint64_t counted = 0;
  for (uint64_t count : histogram) {
    counted += count;
    distribution.push_back(static_cast<double>(counted) / static_cast<double>(total));
  }
  return distribution;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_HISTOGRAM_H_
