#include "worker/data/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"

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
        "line 1, column {}: found no name, expected one in every column of a header ({})",
        nameless - names.begin() + 1,
        nameless == names.begin()
            ? "pandas writes its index so, unless told to_csv(path, index=False)"
            : "there is a column behind every comma"));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> FindColumn(const std::vector<std::string>& names, const std::string& name) {
  const auto count = std::ranges::count(names, name);
  if (count != 1) {
    return absl::DataLossError(
        fmt::format("line 1: found {} columns \"{}\", expected one; the "
                    "columns are {}",
                    count == 0 ? "no" : "several", name, Shown(names)));
  }
  return static_cast<size_t>(std::ranges::find(names, name) - names.begin());
}

bool IsNumber(const CsvField& field) {
  const std::optional<double> value = ParseCsvNumber(field.text);
  return value && !std::isnan(*value);
}

/// Returns whether the field is one of the usual marks for a value that is not known.
bool IsMissing(const CsvField& field) {
  constexpr std::string_view kMarks[] = {"",    "na",   "nan",  "-nan", "n/a", "#n/a", "#n/a n/a",
                                         "#na", "<na>", "null", "none", "?",   "-",    "."};
  return std::ranges::count(kMarks, absl::AsciiStrToLower(std::string(field.text))) > 0;
}

/// Returns whether numbers may well be names: pandas numbers columns that have none, years ascend,
/// and many programs put names in quotes and numbers not.
bool MayBeNames(const std::vector<CsvField>& numbers) {
  if (std::ranges::any_of(numbers, &CsvField::is_quoted)) return true;
  const auto is_whole = [](const CsvField& field) {
    return std::ranges::all_of(field.text, absl::ascii_isdigit);
  };
  const auto value = [](const CsvField& field) { return *ParseCsvNumber(field.text); };
  return numbers.size() > 1 && std::ranges::all_of(numbers, is_whole) &&
         std::ranges::adjacent_find(numbers, std::ranges::greater_equal(), value) == numbers.end();
}

absl::StatusOr<bool> IsHeader(const std::vector<CsvField>& line, const DataSpec& spec) {
  if (spec.header != DataSpec::Header::kAuto) return spec.header == DataSpec::Header::kPresent;
  if (!spec.label_columns.empty()) return true;
  std::vector<CsvField> numbers;
  std::ranges::copy_if(line, std::back_inserter(numbers), IsNumber);
  const bool has_text = std::ranges::any_of(
      line, [](const CsvField& field) { return !IsNumber(field) && !IsMissing(field); });
  if (has_text && numbers.empty()) return true;
  if (!has_text && !numbers.empty() && !MayBeNames(numbers)) return false;
  std::vector<std::string> shown;
  for (const CsvField& field : line) {
    if (shown.size() < kNamesShownMax + 1) shown.push_back(DescribeCsvField(field.text));
  }
  return absl::DataLossError(
      fmt::format("line 1: found {}, which may be the names of the columns or an example; say "
                  "--set data.header=true if they are names, and data.header=false if not",
                  Shown(shown)));
}

}  // namespace

std::string CsvColumns::Describe(size_t column) const {
  if (column >= names.size()) return fmt::format("column {}", column + 1);
  return fmt::format("column {} ({})", column + 1, names[column]);
}

absl::StatusOr<CsvColumns> FindCsvColumns(const std::vector<CsvField>& first_line,
                                          const DataSpec& spec) {
  CsvColumns columns{.count = first_line.size()};
  const absl::StatusOr<bool> is_header = IsHeader(first_line, spec);
  if (!is_header.ok()) return is_header.status();
  if (*is_header) {
    for (const CsvField& field : first_line) columns.names.push_back(field.Name());
    if (absl::Status status = CheckHeader(columns.names); !status.ok()) return status;
  }
  for (const std::string& name : spec.label_columns) {
    const absl::StatusOr<size_t> column = FindColumn(columns.names, name);
    if (!column.ok()) return column.status();
    columns.labels.push_back(*column);
  }
  if (spec.label_columns.empty()) columns.labels.push_back(columns.count - 1);
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
