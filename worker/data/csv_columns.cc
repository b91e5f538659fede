#include "worker/data/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "worker/data/csv_lines.h"

namespace slipstream {
namespace {

constexpr size_t kNamesShownMax = 12;

std::string Shown(const std::vector<std::string>& names) {
  const auto end = names.begin() + static_cast<ptrdiff_t>(std::min(names.size(), kNamesShownMax));
  return fmt::format("{}{}", fmt::join(names.begin(), end, ", "), end == names.end() ? "" : ", …");
}

absl::Status CheckHeader(const std::vector<std::string>& names) {
  const auto nameless = std::ranges::find(names, "");
  if (nameless != names.end()) {
    return absl::DataLossError(fmt::format(
        "line 1, column {}: found no name, expected one in every column of a header (pandas writes "
        "its index so, unless told to_csv(path, index=False))",
        nameless - names.begin() + 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> FindColumn(const std::vector<std::string>& names, const std::string& name) {
  const auto count = std::ranges::count(names, name);
  if (names.empty()) {
    return absl::DataLossError(fmt::format(
        "line 1: found numbers, expected the names of columns, \"{}\" among them", name));
  }
  if (count != 1) {
    return absl::DataLossError(
        fmt::format("line 1: found {} columns \"{}\", expected one; the "
                    "columns are {}",
                    count == 0 ? "no" : "several", name, Shown(names)));
  }
  return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
}

/// True if the line numbers its own columns from 0 on. With fewer than kNumbersMin columns, such
/// numbers may also be an example.
bool IsNumbering(const std::vector<std::string_view>& line) {
  constexpr size_t kNumbersMin = 5;
  if (line.size() < kNumbersMin) return false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != std::to_string(i)) return false;
  }
  return true;
}

}  // namespace

std::string CsvColumns::Describe(size_t column) const {
  if (column >= names.size()) return fmt::format("column {}", column + 1);
  return fmt::format("column {} ({})", column + 1, names[column]);
}

absl::StatusOr<CsvColumns> FindCsvColumns(const std::vector<std::string_view>& first_line,
                                          const std::vector<std::string>& label_columns) {
  CsvColumns columns{.count = first_line.size()};
  const bool has_header = std::ranges::none_of(
      first_line, [](std::string_view field) { return ParseCsvNumber(field).has_value(); });
  if (has_header) {
    columns.names.assign(first_line.begin(), first_line.end());
    if (absl::Status status = CheckHeader(columns.names); !status.ok()) return status;
  }
  if (IsNumbering(first_line)) {
    return absl::DataLossError(fmt::format(
        "line 1: found 0 to {}, which number the columns (pandas writes so where they have no "
        "names) and are no example; drop that line (to_csv(header=False)), or name the columns",
        first_line.size() - 1));
  }
  for (const std::string& name : label_columns) {
    const absl::StatusOr<size_t> column = FindColumn(columns.names, name);
    if (!column.ok()) return column.status();
    columns.labels.push_back(*column);
  }
  if (label_columns.empty()) columns.labels.push_back(columns.count - 1);
  for (size_t column = 0; column < columns.count; ++column) {
    if (std::ranges::count(columns.labels, column) == 0) columns.features.push_back(column);
  }
  if (columns.features.empty()) {
    return absl::DataLossError(fmt::format(
        "line 1: found {} column{}, all of them labels; expected others to learn from, separated "
        "by commas",
        columns.count, columns.count == 1 ? "" : "s"));
  }
  return columns;
}

}  // namespace slipstream
