#include "server/status/version_skew.h"

#include <algorithm>
#include <cmath>

namespace slipstream {

void VersionSkew::Note(ShardId shard, Version version, absl::Time now) {
  std::deque<Report>& reports = reports_[shard];
  reports.emplace_back(now, version);
  if (reports.size() > kReportsKept) reports.pop_front();
}

uint64_t VersionSkew::Skew() const {
  if (reports_.size() < 2) return 0;
  absl::Time moment = absl::InfiniteFuture();
  for (const auto& [shard, reports] : reports_) moment = std::min(moment, reports.back().first);
  double lowest = VersionAt(moment, reports_.begin()->second);
  double highest = lowest;
  for (const auto& [shard, reports] : reports_) {
    const double version = VersionAt(moment, reports);
    lowest = std::min(lowest, version);
    highest = std::max(highest, version);
  }
  return static_cast<uint64_t>(std::llround(highest - lowest));
}

double VersionSkew::VersionAt(absl::Time time, const std::deque<Report>& reports) {
  const auto later =
      std::ranges::find_if(reports, [time](const Report& report) { return report.first >= time; });
  const auto version = static_cast<double>(Value(later->second));
  if (later == reports.begin() || later->first == time) return version;
  const auto earlier = std::prev(later);
  const auto before = static_cast<double>(Value(earlier->second));
  return before + (version - before) *
                      absl::FDivDuration(time - earlier->first, later->first - earlier->first);
}

}  // namespace slipstream
