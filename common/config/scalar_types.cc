#include "common/config/scalar_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "common/config/scalar_units.h"
#include "common/settings/device_choice.h"

namespace slipstream {
namespace {

std::string WithLargestUnit(uint64_t value, std::span<const Unit> units,
                            std::string_view smallest) {
  if (value == 0) return fmt::format("0{}", smallest);
  for (const Unit& unit : units) {
    if (value % unit.factor == 0) return fmt::format("{}{}", value / unit.factor, unit.name);
  }
  return fmt::format("{}{}", value, smallest);
}

std::string WriteDuration(absl::Duration value) {
  return WithLargestUnit(static_cast<uint64_t>(absl::ToInt64Milliseconds(value)), kDurationUnits,
                         "s");
}

std::string WriteBytes(uint64_t value) { return WithLargestUnit(value, kBytesUnits, ""); }

struct WriteAs {
  const ScalarValue& value;

  std::string operator()(const CountType&) const { return fmt::format("{}", As<uint64_t>()); }
  std::string operator()(const BytesType&) const { return WriteBytes(As<uint64_t>()); }
  std::string operator()(const NumberType&) const {
    std::array<char, 32> text;
    // to_chars writes the shortest text that reads back as the same number.
    const auto end = std::to_chars(text.data(), text.data() + text.size(), As<double>()).ptr;
    return std::string(text.data(), end);
  }
  std::string operator()(const DurationType&) const { return WriteDuration(As<absl::Duration>()); }
  std::string operator()(const FlagType&) const { return As<bool>() ? "true" : "false"; }
  std::string operator()(const TextType&) const { return WriteText(As<std::string>()); }
  std::string operator()(const ChoiceType&) const { return As<std::string>(); }

  template <typename T>
  const T& As() const {
    return std::get<T>(value);
  }
};

struct Describe {
  std::string operator()(const CountType& type) const {
    if (type.max == std::numeric_limits<uint64_t>::max()) {
      return type.min == 0 ? "a whole number in [0, 2^64)"
                           : fmt::format("a whole number in [{}, 2^64)", type.min);
    }
    if (type.min == type.max) return fmt::format("{}", type.min);
    return fmt::format("a whole number in [{}, {}]", type.min, type.max);
  }
  std::string operator()(const BytesType& type) const {
    std::string text = fmt::format("bytes in [{}, {}]", WriteBytes(type.min), WriteBytes(type.max));
    if (type.multiple_of > 1) text += fmt::format(" and a multiple of {}", type.multiple_of);
    return type.takes_zero ? "0, or " + text : text;
  }
  std::string operator()(const NumberType& type) const {
    if (std::isinf(type.max)) {
      return fmt::format("a number {} {}", type.is_min_excluded ? "above" : "of at least",
                         type.min);
    }
    return fmt::format("a number in {}{}, {}{}", type.is_min_excluded ? '(' : '[', type.min,
                       type.max, type.is_max_excluded ? ')' : ']');
  }
  std::string operator()(const DurationType& type) const {
    return fmt::format("a time in [{}, {}]", WriteDuration(type.min), WriteDuration(type.max));
  }
  std::string operator()(const FlagType&) const { return "true or false"; }
  std::string operator()(const TextType& type) const {
    switch (type.form) {
      case TextType::Form::kAny:
        return fmt::format("text of up to {} bytes", TextType::kBytesMax);
      case TextType::Form::kName:
        return fmt::format("1 to {} letters, digits, '.', '_' and '-'", kNameBytesMax);
      case TextType::Form::kDevice:
        return fmt::format("auto, cpu, cuda, cuda:N with N up to {}, or different ones as cuda:0,1",
                           DeviceChoice::kIndexMax);
    }
    return "";
  }
  std::string operator()(const ChoiceType& type) const {
    if (type.names.size() == 1) return type.names.front();
    const std::vector<std::string> head(type.names.begin(), type.names.end() - 1);
    return fmt::format("{} or {}", fmt::join(head, ", "), type.names.back());
  }
};

}  // namespace

std::string WriteScalar(const ScalarType& type, const ScalarValue& value) {
  return std::visit(WriteAs{value}, type);
}

std::string DescribeScalar(const ScalarType& type) { return std::visit(Describe{}, type); }

std::string WriteText(const std::string& text) {
  static const std::vector<std::string> kOtherMeanings = {"null", "true", "false", "yes", "no",
                                                          "on",   "off",  "y",     "n"};
  const auto is_plain = [](char c) {
    return IsDigit(c) || IsLetter(c) || c == '_' || c == '-' || c == '.' || c == '/' || c == ':';
  };
  std::string lower = text;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (!text.empty() && (IsLetter(text.front()) || text.front() == '/') && text.back() != ':' &&
      std::ranges::all_of(text, is_plain) && std::ranges::count(kOtherMeanings, lower) == 0) {
    return text;
  }
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string DescribeNode(const YamlNode& node) {
  constexpr size_t kShownMax = 60;
  switch (node.kind) {
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kScalar:
      break;
    default:
      return "nothing";
  }
  size_t end = std::min(kShownMax, node.text.size());
  // Do not cut through a character of several bytes.
  while (end > 0 && end < node.text.size() && (node.text[end] & 0xC0) == 0x80) --end;
  std::string text = node.text.substr(0, end);
  for (char& c : text) c = static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  if (text.size() < node.text.size()) text += "…";
  if (node.is_quoted) return fmt::format("the text \"{}\" in quotes", text);
  return fmt::format("\"{}\"", text);
}

}  // namespace slipstream
