#include "deploy/psctl/status/staleness_histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

}  // namespace

std::string FormatHistogram(std::span<const uint64_t> counts, uint64_t max,
                            const HistogramStyle& style) {
  PS_CHECK(style.lines_max > 0);
  const bool is_open = !counts.empty() && max >= counts.size();
  while (!counts.empty() && counts.back() == 0) counts = counts.first(counts.size() - 1);
  if (counts.empty()) return "";

  const size_t per_line = (counts.size() + style.lines_max - 1) / style.lines_max;
  std::vector<uint64_t> lines;
  for (size_t i = 0; i < counts.size(); i += per_line) {
    const auto part = counts.subspan(i, std::min(per_line, counts.size() - i));
    lines.push_back(std::accumulate(part.begin(), part.end(), uint64_t{0}));
  }
  const uint64_t total = std::accumulate(lines.begin(), lines.end(), uint64_t{0});
  const uint64_t largest = *std::max_element(lines.begin(), lines.end());

  std::vector<TableRow> rows;
  uint64_t up_to = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t first = i * per_line;
    const size_t last = std::min(first + per_line, counts.size()) - 1;
    up_to += lines[i];
    rows.push_back({Label(first, last, is_open && i + 1 == lines.size()),
                    fmt::format("{}", lines[i]), Percent(lines[i], total), Percent(up_to, total),
                    CountBar(lines[i], largest, style.bar_width)});
  }
  return FormatTable({"staleness", "gradients", "share", "up to", ""}, rows);
}

}  // namespace slipstream
