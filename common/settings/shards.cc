#include "common/settings/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "common/base/limits.h"

namespace slipstream {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kFixedBytes = uint64_t{64} << 20;
constexpr uint64_t kReusedBytesMax = uint64_t{256} << 20;

/// Returns the bytes of the versions that are reused, and of everything whose size is the same for
/// every model.
uint64_t ConstantBytes(uint64_t values, const RunSpec& run) {
  return kFixedBytes + VersionsReused(values, run.cluster.workers) * values * sizeof(float);
}

/// Returns how many arrays of all values the gradients of one worker may take.
uint64_t ArraysOfWorker(const RunSpec& run) {
  const uint64_t bases =
      RowOf(run.optimizer.staleness_scaling).uses_base_weights ? kBasesOfSlotMax : 0;
  uint64_t of_gradient = std::max<uint64_t>(bases, 1);
  if (run.durability.keeps_log()) {
    // A push stays until it is on the disk, and so does the version with which it is answered. A
    // checkpoint that is written holds the bases that there were when it was begun.
    of_gradient += 1 + bases;
  }
  return uint64_t{run.training.pipeline_depth} * of_gradient +
         (run.worker.has_free_lanes() ? 1 : 0);
}

}  // namespace

uint64_t GradientsUnderWay(const RunSpec& run) {
  return uint64_t{run.cluster.workers} * run.training.pipeline_depth;
}

uint64_t VersionsReused(uint64_t values, uint32_t workers) {
  const uint64_t that_fit = kReusedBytesMax / sizeof(float) / std::max<uint64_t>(values, 1);
  return std::min<uint64_t>(workers, that_fit);
}

uint64_t ShardBytesNeeded(uint64_t values, const RunSpec& run) {
  const uint64_t states = RowOf(run.server_optimizer().kind).state_arrays;
  const uint64_t history = RowOf(run.optimizer.staleness_scaling).keeps_history ? 1 : 0;
  // The newest version is one of those that an update needs. Beside those that are kept, readers
  // may hold two that were; where only the newest is kept, few readers are expected, and none is
  // counted.
  const uint64_t kept = run.readers.versions_kept;
  const uint64_t of_readers = kept > 1 ? kept + 2 : 0;  // One more for changes between them.
  const uint64_t of_rounds = run.versions_kept() - kept;
  // A checkpoint holds its version and the state beside it while it is written.
  const uint64_t of_checkpoint = run.durability.saves() ? 1 + states + history : 0;
  const uint64_t bytes_each =
      (2 + of_readers + of_rounds + ArraysOfWorker(run) * run.cluster.workers + 2 * states +
       history + of_checkpoint) *
      sizeof(float);
  const uint64_t constant = ConstantBytes(values, run);
  if (values > (kUnlimited - constant) / bytes_each) return kUnlimited;
  return values * bytes_each + constant;
}

uint32_t MembersWithin(uint64_t bytes, uint64_t values, const RunSpec& run) {
  RunSpec without_workers = run;
  without_workers.cluster.workers = 0;
  const uint64_t reused = ConstantBytes(values, run) - kFixedBytes;
  const uint64_t needed = ShardBytesNeeded(values, without_workers);
  const uint64_t fixed = needed > kUnlimited - reused ? kUnlimited : needed + reused;
  if (bytes < fixed) return 0;
  const uint64_t of_worker = ArraysOfWorker(run) * sizeof(float) * values;
  return static_cast<uint32_t>(std::min<uint64_t>((bytes - fixed) / of_worker, kWorkersMax));
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
