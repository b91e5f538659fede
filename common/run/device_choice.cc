#include "common/run/device_choice.h"

#include <charconv>

namespace slipstream {
namespace {

constexpr std::string_view kNumbered = "cuda:";

}  // namespace

std::optional<DeviceChoice> DeviceChoice::FromText(std::string_view text) {
  if (text == "auto") return DeviceChoice{Kind::kAuto};
  if (text == "cpu") return DeviceChoice{Kind::kCpu};
  if (text == "cuda") return DeviceChoice{Kind::kAnyCuda};
  if (!text.starts_with(kNumbered)) return std::nullopt;
  const std::string_view digits = text.substr(kNumbered.size());
  uint32_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  if (!is_whole || index > kIndexMax) return std::nullopt;
  return DeviceChoice{Kind::kCuda, index};
}

std::string DeviceChoice::ToText() const {
  switch (kind) {
    case Kind::kAuto:
      return "auto";
    case Kind::kCpu:
      return "cpu";
    case Kind::kAnyCuda:
      return "cuda";
    case Kind::kCuda:
      return std::string(kNumbered) + std::to_string(index);
  }
  return "auto";
}

}  // namespace slipstream
