#include "server/storage/memory_budget.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>

#include "common/process/memory_bytes.h"

namespace slipstream {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

}  // namespace

uint64_t ShardBytesNeeded(uint64_t values, uint64_t gradients, const OptimizerSpec& optimizer) {
  constexpr uint64_t kFixedBytes = uint64_t{64} << 20;
  const uint64_t states = RowOf(optimizer.kind).state_arrays;
  const uint64_t bytes_each = (2 + gradients + 2 * states) * sizeof(float);
  if (values > (kUnlimited - kFixedBytes) / bytes_each) return kUnlimited;
  return values * bytes_each + kFixedBytes;
}

uint64_t AvailableMemoryBytes() { return ReadMemoryBytes().available; }

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

}  // namespace slipstream
