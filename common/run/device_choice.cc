#include "common/run/device_choice.h"

#include <charconv>

namespace slipstream {
namespace {

constexpr std::string_view kNumbered = "cuda:";

}  // namespace

std::optional<DeviceChoice> DeviceChoice::FromText(std::string_view text) {
  if (text == "auto") return DeviceChoice{Kind::kAuto};
  if (text == "cpu") return DeviceChoice{Kind::kCpu};
  if (text == "cuda") return DeviceChoice{Kind::kCuda};
  if (!text.starts_with(kNumbered)) return std::nullopt;
  const std::string_view digits = text.substr(kNumbered.size());
  DeviceChoice choice = {Kind::kCuda};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), choice.index);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  if (!is_whole || choice.index > kIndexMax) return std::nullopt;
  return choice;
}

std::string DeviceChoice::ToText() const {
  switch (kind) {
    case Kind::kAuto:
      return "auto";
    case Kind::kCpu:
      return "cpu";
    case Kind::kCuda:
      return index == 0 ? "cuda" : std::string(kNumbered) + std::to_string(index);
  }
  return "auto";
}

}  // namespace slipstream
