#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "common/config/scalar_types.h"
#include "common/config/scalar_units.h"
#include "common/config/suggestion.h"
#include "common/run/device_choice.h"

namespace slipstream {
namespace {

using Outcome = std::variant<ScalarValue, ValueError>;

size_t DigitsAt(std::string_view text, size_t position) {
  size_t end = position;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return end - position;
}

/// Returns the length of the number at the start of `text`, in JSON's notation; 0 if there is none.
size_t NumberLength(std::string_view text) {
  size_t end = text.starts_with('-') ? 1 : 0;
  const size_t whole = DigitsAt(text, end);
  if (whole == 0 || (whole > 1 && text[end] == '0')) return 0;
  end += whole;
  if (end < text.size() && text[end] == '.') {
    const size_t fraction = DigitsAt(text, end + 1);
    if (fraction == 0) return 0;
    end += 1 + fraction;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const bool has_sign = end + 1 < text.size() && (text[end + 1] == '+' || text[end + 1] == '-');
    const size_t first = end + (has_sign ? 2 : 1);
    const size_t exponent = DigitsAt(text, first);
    if (exponent > 0) end = first + exponent;
  }
  return end;
}

/// Returns an error if digits start with a zero, which YAML 1.1 reads as octal.
std::optional<ValueError> LeadingZero(std::string_view text) {
  const size_t digits = DigitsAt(text, 0);
  if (digits < 2 || text[0] != '0' || digits != text.size()) return std::nullopt;
  const size_t first = std::min(text.find_first_not_of('0'), text.size() - 1);
  return ValueError{
      fmt::format("must not start with 0, which some read as octal; write {}", text.substr(first))};
}

std::string Wrong(const std::string& expected, const YamlNode& node) {
  return fmt::format("must be {}, not {}", expected, DescribeNode(node));
}

/// Reads digits only. Sets `is_too_large` for a number that does not fit into 64 bits.
std::optional<uint64_t> ReadDigits(std::string_view text, bool& is_too_large) {
  if (text.empty() || DigitsAt(text, 0) != text.size()) return std::nullopt;
  uint64_t value = 0;
  is_too_large = std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc();
  return value;
}

/// Returns `text` × `factor` if that is a whole number, for decimal digits with an optional
/// fraction.
std::optional<uint64_t> ScaledExactly(std::string_view text, uint64_t factor) {
  const size_t point = text.find('.');
  std::string digits(text.substr(0, point));
  uint64_t divisor = 1;
  if (point != std::string_view::npos) {
    std::string_view fraction = text.substr(point + 1);
    while (fraction.ends_with('0')) fraction.remove_suffix(1);
    if (fraction.size() > 9) return std::nullopt;
    digits += fraction;
    for (size_t i = 0; i < fraction.size(); ++i) divisor *= 10;
  }
  uint64_t value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  uint64_t product = 0;
  if (parsed.ec != std::errc() || __builtin_mul_overflow(value, factor, &product)) {
    return std::nullopt;
  }
  if (product % divisor != 0) return std::nullopt;
  return product / divisor;
}

/// Reads each type. REQUIRES: the node is a scalar.
struct ReadAs {
  const YamlNode& node;

  Outcome operator()(const CountType& type) const {
    if (node.is_quoted) return ValueError{Wrong(DescribeScalar(type), node)};
    if (auto error = LeadingZero(node.text)) return *error;
    bool is_too_large = false;
    const std::optional<uint64_t> value = ReadDigits(node.text, is_too_large);
    if (!value || is_too_large || *value < type.min || *value > type.max) {
      return ValueError{Wrong(DescribeScalar(type), node)};
    }
    return ScalarValue{*value};
  }

  Outcome operator()(const BytesType& type) const {
    if (node.is_quoted) return ValueError{Wrong(DescribeScalar(type), node)};
    if (auto error = LeadingZero(node.text)) return *error;
    const size_t digits = DigitsAt(node.text, 0);
    const std::string_view number = std::string_view(node.text).substr(0, digits);
    const std::string_view unit_name = std::string_view(node.text).substr(digits);
    uint64_t factor = 1;
    if (!unit_name.empty()) {
      const auto unit = std::ranges::find(kBytesUnits, unit_name, &Unit::name);
      if (digits == 0) return ValueError{Wrong(DescribeScalar(type), node)};
      if (unit == kBytesUnits.end()) return ValueError{UnknownBytesUnit(unit_name)};
      factor = unit->factor;
    }
    const std::optional<uint64_t> value = ScaledExactly(number, factor);
    if (value == 0 && type.takes_zero) return ScalarValue{*value};
    if (!value || *value < type.min || *value > type.max || *value % type.multiple_of != 0) {
      return ValueError{Wrong(DescribeScalar(type), node)};
    }
    return ScalarValue{*value};
  }

  Outcome operator()(const NumberType& type) const {
    const bool is_number = !node.is_quoted && NumberLength(node.text) == node.text.size();
    if (!is_number) {
      if (auto error = LeadingZero(node.text); error && !node.is_quoted) return *error;
      return ValueError{Wrong(DescribeScalar(type), node)};
    }
    double value = 0;
    const auto parsed =
        std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
    const bool is_low = type.is_min_excluded ? value <= type.min : value < type.min;
    const bool is_high = type.is_max_excluded ? value >= type.max : value > type.max;
    if (parsed.ec != std::errc() || !std::isfinite(value) || is_low || is_high) {
      return ValueError{Wrong(DescribeScalar(type), node)};
    }
    return ScalarValue{value == 0 ? 0.0 : value};  // −0 would be printed differently.
  }

  Outcome operator()(const DurationType& type) const {
    const std::string_view text = node.text;
    const size_t length = NumberLength(text);
    const std::string_view number = text.substr(0, length);
    const std::string_view unit_name = text.substr(length);
    const bool is_plain = number.find_first_of("-eE") == std::string_view::npos;
    if (node.is_quoted || length == 0 || !is_plain) {
      return ValueError{Wrong(DescribeScalar(type), node)};
    }
    if (unit_name.empty()) {
      return ValueError{fmt::format("has no unit; write {0}ms, {0}s, {0}m or {0}h", number)};
    }
    const auto unit = std::ranges::find(kDurationUnits, unit_name, &Unit::name);
    if (unit == kDurationUnits.end()) {
      return ValueError{
          fmt::format("has the unknown unit \"{}\"; units are ms, s, m and h", unit_name)};
    }
    const std::optional<uint64_t> milliseconds = ScaledExactly(number, unit->factor);
    // The bound is a century, so that the conversion cannot overflow.
    if (!milliseconds || *milliseconds > uint64_t{876'600} * 3'600'000) {
      return ValueError{Wrong(DescribeScalar(type) + " in whole milliseconds", node)};
    }
    const absl::Duration value = absl::Milliseconds(static_cast<int64_t>(*milliseconds));
    if (value < type.min || value > type.max) return ValueError{Wrong(DescribeScalar(type), node)};
    return ScalarValue{value};
  }

  Outcome operator()(const FlagType& type) const {
    if (!node.is_quoted && node.text == "true") return ScalarValue{true};
    if (!node.is_quoted && node.text == "false") return ScalarValue{false};
    return ValueError{Wrong(DescribeScalar(type), node)};
  }

  Outcome operator()(const TextType& type) const {
    const auto is_control = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    };
    const auto is_name = [](char c) {
      return IsDigit(c) || IsLetter(c) || c == '.' || c == '_' || c == '-';
    };
    const std::string& text = node.text;
    if (std::ranges::any_of(text, is_control)) {
      return ValueError{"must not contain control characters"};
    }
    if (text.size() > TextType::kBytesMax) return ValueError{Wrong(DescribeScalar(type), node)};
    if (type.form == TextType::Form::kName &&
        (text.empty() || text.size() > kNameBytesMax || !std::ranges::all_of(text, is_name))) {
      return ValueError{Wrong(DescribeScalar(type), node)};
    }
    if (type.form == TextType::Form::kDevice && !DeviceChoice::FromText(text).has_value()) {
      return ValueError{Wrong(DescribeScalar(type), node)};
    }
    return ScalarValue{text};
  }

  Outcome operator()(const ChoiceType& type) const {
    if (std::ranges::find(type.names, node.text) != type.names.end()) return ScalarValue{node.text};
    return ValueError{Wrong(DescribeScalar(type), node) + DidYouMean(node.text, type.names)};
  }

  static std::string UnknownBytesUnit(std::string_view name) {
    const std::vector<std::string> near = {"KiB", "MiB", "GiB"};
    return fmt::format("has the unknown unit \"{}\"; units are KiB, MiB and GiB", name) +
           DidYouMean(name, near);
  }
};

}  // namespace

std::variant<ScalarValue, ValueError> ReadScalar(const ScalarType& type, const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kNothing) {
    return ValueError{fmt::format("has no value; it must be {}", DescribeScalar(type))};
  }
  if (node.kind != YamlNode::Kind::kScalar) return ValueError{Wrong(DescribeScalar(type), node)};
  return std::visit(ReadAs{node}, type);
}

std::string ScalarError(const ScalarType& type, const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = text;
  const auto value = ReadScalar(type, node);
  const auto* error = std::get_if<ValueError>(&value);
  return error == nullptr ? "" : error->message;
}

}  // namespace slipstream
