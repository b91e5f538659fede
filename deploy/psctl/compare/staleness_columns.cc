#include "deploy/psctl/compare/staleness_columns.h"

#include <algorithm>
#include <numeric>

#include "deploy/psctl/status/staleness_histogram.h"

namespace slipstream {

StalenessColumns::StalenessColumns(size_t end, size_t columns_max)
    : width_(std::max<size_t>(1, (end + columns_max - 1) / columns_max)),
      count_(std::max<size_t>(1, (end + width_ - 1) / width_)) {}

size_t StalenessColumns::EndOf(std::span<const uint64_t> counts) { return DistributionEnd(counts); }

ChartScale StalenessColumns::Scale(int ticks) const {
  ChartScale scale = ChartScale::Around(0, static_cast<double>(end()), ticks, 1);
  scale.low = -0.5;
  scale.high = static_cast<double>(end()) - 0.5;
  std::erase_if(scale.ticks, [&](double tick) { return tick > scale.high; });
  return scale;
}

std::vector<double> StalenessColumns::Percent(std::span<const uint64_t> counts) const {
  const double total = static_cast<double>(std::reduce(counts.begin(), counts.end()));
  std::vector<double> percent(count_);
  for (size_t i = 0; i < std::min(counts.size(), end()) && total > 0; ++i) {
    percent.at(i / width_) += 100 * static_cast<double>(counts[i]) / total;
  }
  return percent;
}

void StalenessColumns::Draw(Chart& chart, const std::vector<double>& percent, size_t group,
                            size_t groups, double factor, const std::string& color) const {
  const auto width = static_cast<double>(width_);
  const double share = 0.8 * width / static_cast<double>(groups);
  Curve distribution;
  double up_to = 0;
  for (size_t column = 0; column < count_; ++column) {
    const double begin = static_cast<double>(column) * width - 0.5;
    const double left = begin + 0.1 * width + share * static_cast<double>(group);
    const double height = factor * percent[column];
    if (height > 0) chart.DrawColumn(left, left + share, height, color);
    up_to += percent[column];
    distribution.push_back({begin, up_to});
    distribution.push_back({begin + width, up_to});
  }
  if (up_to > 0) chart.DrawLine(distribution, color);
}

}  // namespace slipstream
