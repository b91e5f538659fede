#include "common/config/yaml_number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "absl/strings/numbers.h"
#include "common/config/scalar_units.h"

namespace slipstream {
namespace {

size_t DigitsAt(std::string_view text, size_t position) {
  size_t end = position;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return end - position;
}

bool HasSign(std::string_view text) { return text.starts_with('-') || text.starts_with('+'); }

/// Reads `text`, all of which has to be digits of the base. `count` stays empty if they are too
/// many for 64 bits.
std::optional<YamlNumber> ReadDigits(std::string_view text, int base) {
  uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count, base);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) return std::nullopt;
  if (error != std::errc()) {
    return YamlNumber{
        .value = std::numeric_limits<double>::infinity(), .is_whole = true, .count = {}};
  }
  return YamlNumber{.value = static_cast<double>(count), .is_whole = true, .count = count};
}

bool IsAnyOf(std::string_view text, const std::array<std::string_view, 3>& spellings) {
  return std::ranges::find(spellings, text) != spellings.end();
}

std::optional<YamlNumber> ReadNotFinite(std::string_view text) {
  if (IsAnyOf(text, {".nan", ".NaN", ".NAN"})) {
    return YamlNumber{.value = std::numeric_limits<double>::quiet_NaN(), .count = {}};
  }
  const double sign = text.starts_with('-') ? -1 : 1;
  if (!IsAnyOf(text.substr(HasSign(text) ? 1 : 0), {".inf", ".Inf", ".INF"})) return std::nullopt;
  return YamlNumber{.value = sign * std::numeric_limits<double>::infinity(), .count = {}};
}

}  // namespace

size_t DecimalLength(std::string_view text) {
  size_t end = HasSign(text) ? 1 : 0;
  const size_t whole = DigitsAt(text, end);
  end += whole;
  const bool has_point = end < text.size() && text[end] == '.';
  const size_t fraction = has_point ? DigitsAt(text, end + 1) : 0;
  if (whole + fraction == 0) return 0;
  if (has_point) end += 1 + fraction;
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const size_t first = end + 1 + (HasSign(text.substr(end + 1)) ? 1 : 0);
    const size_t exponent = DigitsAt(text, first);
    if (exponent > 0) end = first + exponent;
  }
  return end;
}

std::optional<YamlNumber> ReadYamlNumber(std::string_view text) {
  if (text.starts_with("0x")) return ReadDigits(text.substr(2), 16);
  if (text.starts_with("0o")) return ReadDigits(text.substr(2), 8);
  if (text.empty() || DecimalLength(text) != text.size()) return ReadNotFinite(text);
  const bool is_whole = text.find_first_of(".eE") == text.npos;
  YamlNumber number = {.is_whole = is_whole, .count = {}};
  // It takes signs and all these forms, and overflows to infinity.
  if (!absl::SimpleAtod(absl::string_view(text.data(), text.size()), &number.value)) {
    return std::nullopt;
  }
  if (is_whole && !text.starts_with('-')) {
    const std::string_view digits = text.substr(text.starts_with('+') ? 1 : 0);
    number.count = ReadDigits(digits, 10)->count;
  } else if (is_whole && number.value == 0) {
    number.count = 0;
  }
  return number;
}

std::optional<bool> ReadYamlTruth(std::string_view text) {
  if (IsAnyOf(text, {"true", "True", "TRUE"})) return true;
  if (IsAnyOf(text, {"false", "False", "FALSE"})) return false;
  return std::nullopt;
}

}  // namespace slipstream
