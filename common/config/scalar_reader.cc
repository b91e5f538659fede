#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/config/scalar_types.h"
#include "common/config/scalar_units.h"
#include "common/config/suggestion.h"
#include "common/config/yaml_number.h"
#include "common/settings/device_choice.h"

namespace slipstream {
namespace {

using Outcome = std::variant<ScalarValue, ValueError>;

/// Returns the error "must be RULE: CAUSE".
ValueError Misfit(const ScalarType& type, const std::string& cause) {
  return {fmt::format("must be {}: {}", DescribeScalar(type), cause)};
}

/// Returns the error "must be RULE, not VALUE", for values that are just other ones.
ValueError OtherValue(const ScalarType& type, const YamlNode& node, const std::string& hint = "") {
  return {fmt::format("must be {}, not {}{}", DescribeScalar(type), DescribeNode(node), hint)};
}

/// Returns an error if digits start with a zero, which YAML 1.1 reads as octal.
std::optional<ValueError> LeadingZero(std::string_view text) {
  if (text.size() < 2 || text[0] != '0' || !std::ranges::all_of(text, IsDigit)) return std::nullopt;
  const size_t first = std::min(text.find_first_not_of('0'), text.size() - 1);
  return ValueError{
      fmt::format("must not start with 0, which some read as octal; write {}", text.substr(first))};
}

std::string Without(std::string text, std::string_view characters) {
  std::erase_if(text, [=](char c) { return characters.find(c) != characters.npos; });
  return text;
}

/// Returns what `text`, which is no number, or a number that is not whole, was probably meant to
/// be, as a number that the type takes; or an empty text.
std::string NumberMeantBy(const ScalarType& type, const std::string& text) {
  std::string with_point = text;
  std::ranges::replace(with_point, ',', '.');
  std::vector<std::string> candidates = {with_point, Without(text, "_,' ")};
  // A comma before three digits of a whole number parts thousands.
  if (std::holds_alternative<CountType>(type)) std::ranges::reverse(candidates);
  const std::optional<YamlNumber> number = ReadYamlNumber(text);
  if (number && std::abs(number->value) < 1e15) candidates = {fmt::format("{}", number->value)};
  const std::optional<YamlNumber> percent = ReadYamlNumber(Without(text, " %"));
  if (percent && text.ends_with('%')) candidates = {fmt::format("{}", percent->value / 100)};
  for (const std::string& candidate : candidates) {
    if (candidate != text && ScalarError(type, candidate).empty()) return candidate;
  }
  return "";
}

/// Returns the error of text that is no number of the kind that the type wants.
ValueError NoNumber(const ScalarType& type, const YamlNode& node, std::string_view kind) {
  ValueError error = Misfit(type, fmt::format("{} is not a {}", DescribeNode(node), kind));
  const std::string meant = NumberMeantBy(type, node.text);
  if (!meant.empty()) error.message += "; write " + meant;
  return error;
}

/// Returns the error of a number that is below or above the bounds.
ValueError OutOfRange(const ScalarType& type, const YamlNode& node, bool is_low) {
  const bool is_time = std::holds_alternative<DurationType>(type);
  const std::string_view low = is_time ? "short" : "small";
  const std::string_view high = is_time ? "long" : "large";
  return Misfit(type, fmt::format("{} is too {}", node.text, is_low ? low : high));
}

/// A number and the unit behind it, as they are written.
struct Quantity {
  std::string_view number;
  std::string_view unit;

  bool has_exponent() const { return number.find_first_of("eE") != number.npos; }
  bool is_negative() const { return number.starts_with('-'); }
};

/// Parts a number from its unit. The number is empty if there is none.
Quantity ReadQuantity(std::string_view text) {
  const size_t length = DecimalLength(text);
  Quantity quantity = {.number = text.substr(0, length), .unit = text.substr(length)};
  if (quantity.number.starts_with('+')) quantity.number.remove_prefix(1);
  return quantity;
}

/// Returns the error of an unknown unit. `units` come with the letters that names of each begin
/// with, as "5 sec" for 5s.
ValueError UnknownUnit(const Quantity& quantity, std::string_view units,
                       std::span<const std::pair<std::string_view, std::string_view>> beginnings) {
  std::string name = Without(std::string(quantity.unit), " ");
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  std::string hint;
  for (const auto& [beginning, unit] : beginnings) {
    if (!name.starts_with(beginning)) continue;
    hint = fmt::format("; did you mean {}{}?", quantity.number, unit);
    break;
  }
  return {fmt::format("has the unknown unit \"{}\"; units are {}{}", quantity.unit, units, hint)};
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

/// Reads each type. REQUIRES: the node is a scalar, and in quotes only if the type is text.
struct ReadAs {
  const YamlNode& node;

  Outcome operator()(const CountType& type) const {
    if (auto error = LeadingZero(node.text)) return *error;
    const std::optional<YamlNumber> number = ReadYamlNumber(node.text);
    if (!number || std::isnan(number->value)) return NoNumber(type, node, "number");
    if (!number->is_whole && std::isfinite(number->value)) {
      return NoNumber(type, node, "whole number");
    }
    const bool is_low = number->count ? *number->count < type.min : number->value < 0;
    if (!number->count || is_low || *number->count > type.max) {
      return OutOfRange(type, node, is_low);
    }
    return ScalarValue{*number->count};
  }

  Outcome operator()(const BytesType& type) const {
    if (auto error = LeadingZero(node.text)) return *error;
    if (const auto number = ReadYamlNumber(node.text); number && number->count) {
      return BytesWithin(type, *number->count);
    }
    const Quantity quantity = ReadQuantity(node.text);
    if (quantity.number.empty() || quantity.has_exponent()) {
      return Misfit(type, fmt::format("{} is no size as 4096 or 64KiB", DescribeNode(node)));
    }
    if (quantity.is_negative()) return OutOfRange(type, node, /*is_low=*/true);
    uint64_t factor = 1;
    if (!quantity.unit.empty()) {
      const auto* const unit = std::ranges::find(kBytesUnits, quantity.unit, &Unit::name);
      constexpr std::pair<std::string_view, std::string_view> kBeginnings[] = {
          {"k", "KiB"}, {"m", "MiB"}, {"g", "GiB"}};
      if (unit == kBytesUnits.end()) {
        return UnknownUnit(quantity, "KiB, MiB and GiB", kBeginnings);
      }
      factor = unit->factor;
    }
    const std::optional<uint64_t> value = ScaledExactly(quantity.number, factor);
    return value ? BytesWithin(type, *value)
                 : NotCounted(type, quantity, static_cast<double>(type.max) / factor, "bytes");
  }

  Outcome operator()(const NumberType& type) const {
    if (auto error = LeadingZero(node.text)) return *error;
    const std::optional<YamlNumber> number = ReadYamlNumber(node.text);
    if (!number) return NoNumber(type, node, "number");
    const double value = number->value;
    const bool is_named = node.text.find_first_of("nN") != std::string::npos;  // .nan or .inf
    if (is_named) return Misfit(type, fmt::format("{} is not finite", node.text));
    const bool is_low = type.is_min_excluded ? value <= type.min : value < type.min;
    const bool is_high = type.is_max_excluded ? value >= type.max : value > type.max;
    if (is_low || is_high || !std::isfinite(value)) return OutOfRange(type, node, is_low);
    return ScalarValue{value == 0 ? 0.0 : value};  // −0 would be printed differently.
  }

  Outcome operator()(const DurationType& type) const {
    const Quantity quantity = ReadQuantity(node.text);
    if (quantity.number.empty() || quantity.has_exponent()) {
      return Misfit(type,
                    fmt::format("{} is no time as 500ms, 1.5s, 10m or 2h", DescribeNode(node)));
    }
    if (quantity.unit.empty()) {
      return ValueError{
          fmt::format("has no unit; write {0}ms, {0}s, {0}m or {0}h", quantity.number)};
    }
    const auto* const unit = std::ranges::find(kDurationUnits, quantity.unit, &Unit::name);
    if (unit == kDurationUnits.end()) {
      constexpr std::pair<std::string_view, std::string_view> kBeginnings[] = {
          {"ms", "ms"}, {"mil", "ms"}, {"s", "s"}, {"m", "m"}, {"h", "h"}};
      return UnknownUnit(quantity, "ms, s, m and h", kBeginnings);
    }
    if (quantity.is_negative()) return OutOfRange(type, node, /*is_low=*/true);
    const std::optional<uint64_t> milliseconds = ScaledExactly(quantity.number, unit->factor);
    // The bound is a century, so that the conversion cannot overflow.
    constexpr uint64_t kMillisecondsMax = uint64_t{876'600} * 3'600'000;
    if (!milliseconds || *milliseconds > kMillisecondsMax) {
      const double max = static_cast<double>(kMillisecondsMax) / unit->factor;
      return NotCounted(type, quantity, max, "milliseconds");
    }
    const absl::Duration value = absl::Milliseconds(static_cast<int64_t>(*milliseconds));
    if (value < type.min || value > type.max) return OutOfRange(type, node, value < type.min);
    return ScalarValue{value};
  }

  Outcome operator()(const FlagType& type) const {
    if (const std::optional<bool> value = ReadYamlTruth(node.text)) return ScalarValue{*value};
    return OtherValue(type, node, TruthMeantBy(node.text));
  }

  Outcome operator()(const TextType& type) const {
    const auto is_control = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    };
    const std::string& text = node.text;
    if (std::ranges::any_of(text, is_control)) {
      return ValueError{"must not contain control characters"};
    }
    if (text.size() > TextType::kBytesMax) {
      return Misfit(type, fmt::format("it has {} bytes", text.size()));
    }
    if (type.form == TextType::Form::kName) {
      if (const std::string cause = NoNameBecause(text); !cause.empty()) return Misfit(type, cause);
    }
    if (type.form == TextType::Form::kDevice && !DeviceChoice::FromText(text).has_value()) {
      const bool is_gpu = text.starts_with("gpu");  // That is nearer to cpu.
      return OtherValue(type, node, DidYouMean(is_gpu ? "cuda" : text, {"auto", "cpu", "cuda"}));
    }
    return ScalarValue{text};
  }

  Outcome operator()(const ChoiceType& type) const {
    if (std::ranges::find(type.names, node.text) != type.names.end()) return ScalarValue{node.text};
    return OtherValue(type, node, DidYouMean(node.text, type.names));
  }

  Outcome BytesWithin(const BytesType& type, uint64_t value) const {
    if (value == 0 && type.takes_zero) return ScalarValue{value};
    if (value < type.min || value > type.max) return OutOfRange(type, node, value < type.min);
    if (value % type.multiple_of == 0) return ScalarValue{value};
    return Misfit(type, fmt::format("{} is no multiple of {}", node.text, type.multiple_of));
  }

  /// Returns the error of a quantity that ScaledExactly does not count: it is above `max`, or it is
  /// no whole number of `of`.
  ValueError NotCounted(const ScalarType& type, const Quantity& quantity, double max,
                        std::string_view of) const {
    if (ReadYamlNumber(quantity.number)->value > max) return OutOfRange(type, node, false);
    return Misfit(type, fmt::format("{} is no whole number of {}", node.text, of));
  }

  /// Returns a hint at `true` for text that YAML 1.1 reads so, and at `false` likewise.
  static std::string TruthMeantBy(std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (const bool truth : {true, false}) {
      const std::vector<std::string> words = truth
                                                 ? std::vector<std::string>{"yes", "y", "on", "1"}
                                                 : std::vector<std::string>{"no", "n", "off", "0"};
      if (std::ranges::count(words, text) > 0) return fmt::format("; did you mean {}?", truth);
    }
    return DidYouMean(text, {"true", "false"});
  }

  /// Returns why `text` is no name; empty if it is one.
  static std::string NoNameBecause(const std::string& text) {
    const auto is_name = [](char c) {
      return IsDigit(c) || IsLetter(c) || c == '.' || c == '_' || c == '-';
    };
    if (text.empty()) return "it is empty";
    if (text.size() > kNameBytesMax) return fmt::format("it has {} bytes", text.size());
    const auto wrong = std::ranges::find_if_not(text, is_name);
    if (wrong == text.end()) return "";
    if (*wrong == ' ') return fmt::format("\"{}\" has a blank", text);
    // A character of several bytes is shown whole.
    const auto end = std::find_if(wrong + 1, text.end(), [](char c) { return (c & 0xC0) != 0x80; });
    return fmt::format("\"{}\" has a '{}'", text, std::string(wrong, end));
  }
};

}  // namespace

std::variant<ScalarValue, ValueError> ReadScalar(const ScalarType& type, const YamlNode& node) {
  if (node.kind == YamlNode::Kind::kNothing) {
    return ValueError{fmt::format("has no value; it must be {}", DescribeScalar(type))};
  }
  if (node.kind != YamlNode::Kind::kScalar) return OtherValue(type, node);
  const bool takes_quotes =
      std::holds_alternative<TextType>(type) || std::holds_alternative<ChoiceType>(type);
  if (!node.is_quoted || takes_quotes) return std::visit(ReadAs{node}, type);
  const bool reads_without = ScalarError(type, node.text).empty();
  return OtherValue(type, node, reads_without ? "; leave the quotes out" : "");
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
