#include "server/storage/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>

namespace slipstream {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

/// The first number in a file; nothing if there is none, as where a limit is "max".
std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;
  return number;
}

uint64_t AvailableToMachine() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    uint64_t kib = 0;
    if (name == "MemAvailable:" && file >> kib) return kib * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return kUnlimited;
}

uint64_t AvailableToGroup() {
  const std::optional<uint64_t> limit = ReadNumber("/sys/fs/cgroup/memory.max");
  const std::optional<uint64_t> used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (!limit.has_value() || !used.has_value()) return kUnlimited;
  return *limit - std::min(*limit, *used);
}

}  // namespace

uint64_t ShardBytesNeeded(uint64_t values, uint32_t workers, const OptimizerSpec& optimizer) {
  constexpr uint64_t kFixedBytes = uint64_t{64} << 20;
  const uint64_t states = optimizer.kind == OptimizerSpec::Kind::kMomentum ? 2 : 0;
  const uint64_t bytes_each = (2 + uint64_t{workers} + states) * sizeof(float);
  if (values > (kUnlimited - kFixedBytes) / bytes_each) return kUnlimited;
  return values * bytes_each + kFixedBytes;
}

uint64_t AvailableMemoryBytes() { return std::min(AvailableToMachine(), AvailableToGroup()); }

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

}  // namespace slipstream
