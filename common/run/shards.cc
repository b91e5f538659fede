#include "common/run/shards.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>

namespace slipstream {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

}  // namespace

uint64_t GradientsUnderWay(const RunSpec& run) {
  return uint64_t{run.cluster.workers} * run.training.pipeline_depth;
}

uint64_t ShardBytesNeeded(uint64_t values, const RunSpec& run) {
  constexpr uint64_t kFixedBytes = uint64_t{64} << 20;
  const uint64_t states = RowOf(run.server_optimizer().kind).state_arrays;
  const bool keeps_bases = RowOf(run.optimizer.staleness_scaling).uses_base_weights;
  const uint64_t of_gradients = GradientsUnderWay(run) * (keeps_bases ? kBasesOfSlotMax : 1);
  const uint64_t bytes_each = (2 + of_gradients + 2 * states) * sizeof(float);
  if (values > (kUnlimited - kFixedBytes) / bytes_each) return kUnlimited;
  return values * bytes_each + kFixedBytes;
}

uint64_t ShardPushBytes(uint64_t values, const RunSpec& run) {
  const uint64_t bytes_each = GradientsUnderWay(run) * sizeof(float);
  return values > kUnlimited / bytes_each ? kUnlimited : values * bytes_each;
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(kUnits); ++unit) amount /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

}  // namespace slipstream
