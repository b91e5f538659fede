#include "worker/data/csv_row.h"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>

#include "common/base/utf8.h"

namespace slipstream {
namespace {

constexpr size_t kShownBytesMax = 40;

std::string_view Trim(std::string_view field) {
  while (field.starts_with(' ') || field.starts_with('\t')) field.remove_prefix(1);
  while (field.ends_with(' ') || field.ends_with('\t')) field.remove_suffix(1);
  if (field.size() >= 2 && field.starts_with('"') && field.ends_with('"')) {
    return field.substr(1, field.size() - 2);
  }
  return field;
}

}  // namespace

void SplitCsvRow(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const size_t comma = line.find(',');
    fields.push_back(Trim(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> ParseCsvNumber(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double number = 0;
  const char* const end = field.data() + field.size();
  const auto [parsed, error] = std::from_chars(field.data(), end, number);
  if (parsed != end || error == std::errc::invalid_argument) return std::nullopt;
  // A number that fp64 cannot hold is too large for fp32, or practically zero in it; from_chars
  // does not say which.
  if (error == std::errc::result_out_of_range) return std::nullopt;
  return number;
}

std::string DescribeCsvField(std::string_view field) {
  if (field.empty()) return "nothing";
  std::string shown;
  for (const char c : CutUtf8(field, kShownBytesMax)) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    shown += is_control ? fmt::format("\\x{:02x}", c) : std::string(1, c);
  }
  return fmt::format("\"{}{}\"", shown, field.size() > kShownBytesMax ? "…" : "");
}

}  // namespace slipstream
