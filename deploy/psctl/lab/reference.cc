#include "deploy/psctl/lab/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/config/field_table.h"

namespace slipstream {
namespace {

/// The names that the literature gives to keys.
constexpr std::pair<std::string_view, std::string_view> kLetters[] = {
    {"sigma", "consistency.n"}, {"mu", "training.batch_size"}, {"lambda", "cluster.workers"}};

std::vector<std::string> CutLine(const std::string& line) {
  std::vector<std::string> cells = absl::StrSplit(line, ',');
  for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
  return cells;
}

/// Returns the key that a column stands for; empty if it is another figure.
std::string KeyOf(const std::string& column, const GridReference& reference) {
  if (!reference.match.empty()) {
    const auto found = reference.match.find(column);
    return found == reference.match.end() ? "" : found->second;
  }
  for (const auto& [letter, key] : kLetters) {
    if (column == letter) return std::string(key);
  }
  if (column == reference.error_column) return "";
  const std::variant<std::string, UnknownKey> key = WholeKey(column);
  const auto* const path = std::get_if<std::string>(&key);
  return path == nullptr ? "" : *path;
}

bool IsSame(const std::string& a, const std::string& b) {
  double left = 0;
  double right = 0;
  if (absl::SimpleAtod(a, &left) && absl::SimpleAtod(b, &right)) return left == right;
  return a == b;
}

/// Returns the value of a key in a cell whose values on the axes are `values`.
std::string ValueOf(const Cell& cell, const CellValues& values, const std::string& key) {
  const auto value = std::ranges::find(values, key, &CellValue::key);
  if (value != values.end()) return value->value;
  const Field* const field = FindField(key);
  if (field == nullptr || !field->Applies(cell.settings)) return "";
  return WriteField(field->type, field->get(cell.settings));
}

bool Matches(const ReferenceRow& row, const Cell& cell, const CellValues& values) {
  return std::ranges::all_of(row.keys, [&](const auto& key) {
    return IsSame(ValueOf(cell, values, key.first), key.second);
  });
}

bool Matches(const ReferenceRow& row, const Cell& cell) {
  return Matches(row, cell, cell.values) ||
         std::ranges::any_of(cell.same,
                             [&](const CellValues& values) { return Matches(row, cell, values); });
}

/// Returns the place of each value in their order; equal values share the mean of their places.
std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto below = std::ranges::count_if(values, [&](double other) { return other < value; });
    const auto equal = std::ranges::count(values, value);
    ranks.push_back(static_cast<double>(below) + static_cast<double>(equal - 1) / 2);
  }
  return ranks;
}

std::optional<double> RankCorrelation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 3) return std::nullopt;
  const std::vector<double> left = Ranks(a);
  const std::vector<double> right = Ranks(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double product = 0;
  double squares[2] = {};
  for (size_t i = 0; i < left.size(); ++i) {
    product += (left[i] - mean) * (right[i] - mean);
    squares[0] += (left[i] - mean) * (left[i] - mean);
    squares[1] += (right[i] - mean) * (right[i] - mean);
  }
  if (squares[0] == 0 || squares[1] == 0) return std::nullopt;
  return product / std::sqrt(squares[0] * squares[1]);
}

}  // namespace

std::variant<std::vector<ReferenceRow>, std::vector<Diagnostic>> ParseReference(
    std::string_view text, const GridReference& reference) {
  DiagnosticList diagnostics;
  std::vector<ReferenceRow> rows;
  std::vector<std::string> columns;
  std::vector<std::string> keys;
  int line = 0;
  const std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n');
  for (const std::string& text_line : lines) {
    ++line;
    if (absl::StripAsciiWhitespace(text_line).empty() || text_line.starts_with('#')) continue;
    const std::vector<std::string> cells = CutLine(text_line);
    const Source source = {reference.path, line, 1};
    if (columns.empty()) {
      columns = cells;
      for (const std::string& column : columns) keys.push_back(KeyOf(column, reference));
      for (const auto& [column, key] : reference.match) {
        if (std::ranges::count(columns, column) > 0) continue;
        diagnostics.Report(source, fmt::format("there is no column {}", column));
      }
      if (std::ranges::count(columns, reference.error_column) == 0) {
        diagnostics.Report(source,
                           fmt::format("there is no column {}; name that of the test error in "
                                       "percent by reference.error",
                                       reference.error_column));
      }
      if (std::ranges::all_of(keys, &std::string::empty)) {
        diagnostics.Report(source, "no column stands for a key; name them by reference.match");
      }
      continue;
    }
    if (cells.size() != columns.size()) {
      diagnostics.Report(source,
                         fmt::format("{} values, and {} columns", cells.size(), columns.size()));
      continue;
    }
    ReferenceRow row = {.line = line, .keys = {}, .others = {}};
    for (size_t i = 0; i < cells.size(); ++i) {
      if (columns[i] == reference.error_column) {
        if (!absl::SimpleAtod(cells[i], &row.error_percent)) {
          diagnostics.Report(source, fmt::format("{} is no number: {}", columns[i], cells[i]));
        }
      } else if (!keys[i].empty()) {
        row.keys.emplace_back(keys[i], cells[i]);
      } else {
        row.others.emplace_back(columns[i], cells[i]);
      }
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty() && diagnostics.empty()) {
    diagnostics.Report({reference.path, 1, 1}, "the reference has no rows");
  }
  if (!diagnostics.empty()) return diagnostics.Sorted();
  return rows;
}

std::variant<std::vector<ReferenceRow>, std::vector<Diagnostic>> LoadReference(
    const GridReference& reference) {
  std::ifstream file(reference.path, std::ios::binary);
  if (!file) {
    return std::vector<Diagnostic>{
        {.source = reference.source,
         .message = fmt::format("cannot read the reference {}", reference.path)}};
  }
  return ParseReference(std::string(std::istreambuf_iterator<char>(file), {}), reference);
}

std::optional<double> ReferenceMatch::difference() const {
  if (!ours) return std::nullopt;
  return ours->mean - row.error_percent;
}

size_t ReferenceView::not_reproduced() const {
  if (!tolerance) return 0;
  return static_cast<size_t>(std::ranges::count_if(matches, [this](const ReferenceMatch& match) {
    const std::optional<double> difference = match.difference();
    return !difference || std::abs(*difference) > *tolerance;
  }));
}

ReferenceView CompareWith(const std::vector<ReferenceRow>& rows, const GridReference& reference,
                          const std::vector<PointResult>& points) {
  ReferenceView view = {.matches = {}, .tolerance = reference.tolerance};
  std::vector<double> published;
  std::vector<double> ours;
  double sum = 0;
  double distance = 0;
  for (const ReferenceRow& row : rows) {
    ReferenceMatch match = {.row = row, .ours = {}};
    const auto point = std::ranges::find_if(
        points, [&](const PointResult& one) { return Matches(row, *one.cell); });
    if (point != points.end()) {
      match.point = &*point;
      match.ours = point->Mean(&CellResult::error);
    }
    if (match.ours) {
      match.ours->mean *= 100;
      if (match.ours->half_width) *match.ours->half_width *= 100;
      published.push_back(row.error_percent);
      ours.push_back(match.ours->mean);
      sum += *match.difference();
      distance += std::abs(*match.difference());
    }
    view.matches.push_back(std::move(match));
  }
  if (!ours.empty()) {
    view.mean_difference = sum / static_cast<double>(ours.size());
    view.mean_distance = distance / static_cast<double>(ours.size());
  }
  view.rank_correlation = RankCorrelation(published, ours);
  return view;
}

std::string VerdictText(const ReferenceView& view) {
  std::string text;
  if (view.tolerance) {
    const size_t away = view.not_reproduced();
    text = fmt::format("{} of {} published errors are within {} percentage points of ours: {}",
                       view.matches.size() - away, view.matches.size(), *view.tolerance,
                       away == 0 ? "reproduced" : "does not reproduce");
  } else {
    const auto with = std::ranges::count_if(
        view.matches, [](const ReferenceMatch& match) { return match.ours.has_value(); });
    text = fmt::format("{} of {} published errors have one of ours beside them", with,
                       view.matches.size());
  }
  if (view.mean_difference) {
    text += fmt::format("; ours are {:+.2f} points away on average ({:.2f} without signs)",
                        *view.mean_difference, *view.mean_distance);
  }
  if (view.rank_correlation) {
    text += fmt::format("; rank correlation {:.3f}", *view.rank_correlation);
  }
  return text;
}

}  // namespace slipstream
