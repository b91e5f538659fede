#include "deploy/psctl/status/staleness_histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "common/base/check.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

std::string CountBar(uint64_t count, uint64_t largest, size_t width) {
  if (count == 0) return "";
  const double share = static_cast<double>(count) / static_cast<double>(largest);
  // A count that is not 0 has a bar.
  const auto length = static_cast<size_t>(std::lround(share * static_cast<double>(width)));
  return std::string(std::max<size_t>(length, 1), '#');
}

std::string Percent(uint64_t count, uint64_t total) {
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(count) / static_cast<double>(total));
}

std::string Label(size_t first, size_t last, bool open) {
  if (open) return fmt::format("{}+", first);
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

/// Returns the end of each line's values. REQUIRES: the last count is not 0.
std::vector<size_t> LineEnds(std::span<const uint64_t> counts, size_t lines_max) {
  const size_t end = counts.size();
  // What is beyond the distribution's end has a line of its own, if that leaves one for the rest.
  const bool is_split = end > lines_max && lines_max > 1 && DistributionEnd(counts) < end;
  const size_t shown = is_split ? DistributionEnd(counts) : end;
  const size_t lines = lines_max - (is_split ? 1 : 0);
  const size_t per_line = (shown + lines - 1) / lines;
  std::vector<size_t> ends;
  for (size_t at = per_line; at < shown; at += per_line) ends.push_back(at);
  ends.push_back(shown);
  if (is_split) ends.push_back(end);
  return ends;
}

}  // namespace

size_t DistributionEnd(std::span<const uint64_t> counts) {
  constexpr double kShare = 0.999;
  const auto total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (total == 0) return 0;
  uint64_t up_to = 0;
  size_t end = 0;
  while (static_cast<double>(up_to) < kShare * static_cast<double>(total)) up_to += counts[end++];
  return end;
}

std::string FormatHistogram(std::span<const uint64_t> counts, uint64_t max,
                            const HistogramStyle& style) {
  PS_CHECK(style.lines_max > 0);
  const bool is_open = !counts.empty() && max >= counts.size();
  while (!counts.empty() && counts.back() == 0) counts = counts.first(counts.size() - 1);
  if (counts.empty()) return "";

  const std::vector<size_t> ends = LineEnds(counts, style.lines_max);
  std::vector<uint64_t> lines;
  for (size_t i = 0; i < ends.size(); ++i) {
    const auto begin = counts.begin() + static_cast<ptrdiff_t>(i == 0 ? 0 : ends[i - 1]);
    const auto end = counts.begin() + static_cast<ptrdiff_t>(ends[i]);
    lines.push_back(std::accumulate(begin, end, uint64_t{0}));
  }
  const uint64_t total = std::accumulate(lines.begin(), lines.end(), uint64_t{0});
  const uint64_t largest = *std::max_element(lines.begin(), lines.end());

  std::vector<TableRow> rows;
  uint64_t up_to = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t first = i == 0 ? 0 : ends[i - 1];
    up_to += lines[i];
    rows.push_back({Label(first, ends[i] - 1, is_open && i + 1 == lines.size()),
                    fmt::format("{}", lines[i]), Percent(lines[i], total), Percent(up_to, total),
                    CountBar(lines[i], largest, style.bar_width)});
  }
  return FormatTable({"staleness", "gradients", "share", "up to", ""}, rows);
}

}  // namespace slipstream
