#include "common/settings/device_choice.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace slipstream {
namespace {

constexpr std::string_view kNumbered = "cuda:";

std::optional<uint32_t> ReadIndex(std::string_view digits) {
  uint32_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  if (!is_whole || index > DeviceChoice::kIndexMax) return std::nullopt;
  return index;
}

std::optional<std::vector<uint32_t>> ReadIndices(const std::string& list) {
  std::vector<uint32_t> indices;
  const std::vector<std::string> parts = absl::StrSplit(list, ',');
  for (const std::string& digits : parts) {
    const std::optional<uint32_t> index = ReadIndex(digits);
    if (!index || std::ranges::find(indices, *index) != indices.end()) return std::nullopt;
    indices.push_back(*index);
  }
  if (indices.size() > DeviceChoice::kIndicesMax) return std::nullopt;
  return indices;
}

}  // namespace

std::optional<DeviceChoice> DeviceChoice::FromText(std::string_view text) {
  if (text == "auto") return DeviceChoice{Kind::kAuto, {}};
  if (text == "cpu") return DeviceChoice{Kind::kCpu, {}};
  if (text == "cuda") return DeviceChoice{Kind::kAnyCuda, {}};
  if (!text.starts_with(kNumbered)) return std::nullopt;
  std::optional<std::vector<uint32_t>> indices =
      ReadIndices(std::string(text.substr(kNumbered.size())));
  if (!indices) return std::nullopt;
  return DeviceChoice{Kind::kCuda, *std::move(indices)};
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
      return std::string(kNumbered) + absl::StrJoin(indices, ",");
  }
  return "auto";
}

}  // namespace slipstream
