#include "worker/data/memory_check.h"

#include <fmt/format.h>

#include "common/process/memory_bytes.h"

namespace slipstream {
namespace {

constexpr uint64_t kSmallBytes = uint64_t{64} << 20;

}  // namespace

absl::Status CheckMemory(const std::string& name, uint64_t bytes) {
  if (bytes < kSmallBytes) return absl::OkStatus();
  const uint64_t available = ReadMemoryBytes().available;
  if (bytes <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "{}: no memory for the data: {} bytes are needed, {} are free; use a machine with "
      "more, fewer workers on this one, or less data",
      name, bytes, available));
}

}  // namespace slipstream
