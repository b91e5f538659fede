#include "server/data_plane/checkpoint_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "server/data_plane/shard.h"
#include "server/data_plane/shard_recovery.h"
#include "server/data_plane/shard_save.h"

namespace slipstream {
namespace {

absl::Status NoMemory() {
  return absl::ResourceExhaustedError("there is not enough memory to redo the log");
}

/// Brings the shard to the state of a checkpoint.
absl::Status BeginFrom(const CheckpointFolder& from, const LoggedShard& logged, Shard& shard) {
  ArrayBuffers arrays = shard.NewArrays(logged.model);
  if (arrays.empty()) return NoMemory();
  absl::StatusOr<ShardSave> save =
      LoadCheckpoint(from, arrays, *shard.training_state(), CheckFor(shard, arrays));
  if (!save.ok()) return save.status();
  if (save->state.run.plan->shard_map != logged.model.shard_map.fingerprint()) {
    return absl::FailedPreconditionError("the checkpoint is of another model than the run's");
  }
  shard.BeginRedo(*std::move(save), std::move(arrays));
  return absl::OkStatus();
}

/// Makes the version that a save is of, and fills its values in. REQUIRES: its event was the last
/// one that was redone.
void Complete(ShardSave& save, Shard& shard) {
  while (shard.has_job()) {
    ShardJob job = shard.TakeJob();
    job.Run();
    shard.FinishJob(std::move(job));
  }
  save.values = shard.training_state()->Save();
}

/// Returns where two arrays of equal size first differ in their bits; nothing if they are equal.
std::string ArrayDifference(const std::string& name, std::span<const float> redone,
                            std::span<const float> saved) {
  const auto same_bits = [](float one, float other) {
    return std::bit_cast<uint32_t>(one) == std::bit_cast<uint32_t>(other);
  };
  const auto [ours, theirs] = std::ranges::mismatch(redone, saved, same_bits);
  if (ours == redone.end()) return "";
  return fmt::format("differs at array {}, index {}: {} was redone, {} is saved", name,
                     ours - redone.begin(), *ours, *theirs);
}

/// Compares the arrays. FAILED_PRECONDITION if the checkpoint lacks one.
absl::StatusOr<std::string> ArraysDifference(const ShardSave& redone,
                                             const CheckpointFolder& saved) {
  std::vector<std::pair<std::string, Weights>> arrays = redone.values.arrays;
  for (const auto& [version, base] : redone.bases) arrays.emplace_back(NameOfBase(version), base);
  std::vector<std::unique_ptr<FloatBuffer>> buffers;
  std::vector<LoadedArray> loaded;
  for (const auto& [name, values] : arrays) {
    buffers.push_back(FloatBuffer::TryMake(values->values().size()));
    if (buffers.back() == nullptr) return NoMemory();
    loaded.push_back({name, buffers.back()->values()});
  }
  if (absl::Status read = saved.ReadArrays(loaded); !read.ok()) return read;
  for (size_t i = 0; i < arrays.size(); ++i) {
    std::string difference =
        ArrayDifference(arrays[i].first, arrays[i].second->values(), loaded[i].values);
    if (!difference.empty()) return difference;
  }
  return std::string();
}

absl::StatusOr<std::string> DifferenceFrom(const CheckpointFolder& saved, ShardSave redone) {
  absl::StatusOr<std::string> difference = ArraysDifference(redone, saved);
  if (!difference.ok() || !difference->empty()) return difference;
  const absl::StatusOr<std::string> state = saved.ReadState();
  if (!state.ok()) return state.status();
  const absl::StatusOr<ShardSave> theirs = DecodeSave(*state);
  if (!theirs.ok()) {
    const std::string why(theirs.status().message());
    return absl::Status(theirs.status().code(), fmt::format("{}: {}", saved.StatePath(), why));
  }
  // No segment begins while events are redone. Weights that were given out while the version was
  // being made came to the save after its event.
  redone.log = theirs->log;
  redone.bases = theirs->bases;
  const std::string ours = EncodeSave(redone);
  if (ours == *state) return std::string();
  const auto place = std::ranges::mismatch(ours, *state).in1 - ours.begin();
  return fmt::format("differs at byte {} of the shard's state; all arrays are equal", place);
}

}  // namespace

absl::StatusOr<ReplayedLog> ReplayLog(Disk& disk, const LoggedShard& logged,
                                      const CheckpointFolder& from, const CheckpointFolder* to) {
  const uint64_t first = from.manifest().facts.log;
  if (first == 0) {
    return absl::FailedPreconditionError("the checkpoint was made without a log");
  }
  // One push is held at a time, so far less memory is taken than workers would need.
  Shard shard({.shard = logged.shard, .run = logged.run, .memory_available = [] {
                 return std::numeric_limits<uint64_t>::max();
               }});
  if (absl::Status begun = BeginFrom(from, logged, shard); !begun.ok()) return begun;
  const uint64_t until = to == nullptr ? 0 : to->manifest().facts.log;
  const absl::StatusOr<RedoneLog> redone = RedoLog(disk, logged.directory, first, until, shard);
  if (!redone.ok()) return redone.status();
  ReplayedLog replayed = {.events = redone->events, .version = shard.machine().decided()};
  const std::shared_ptr<ShardSave> save = shard.redone_save();
  shard.EndRedo();
  if (to == nullptr) return replayed;
  if (save == nullptr || save->version() != to->manifest().facts.saved) {
    replayed.difference = "differs: no event of the log has ordered this save";
    return replayed;
  }
  Complete(*save, shard);
  absl::StatusOr<std::string> difference = DifferenceFrom(*to, *save);
  if (!difference.ok()) return difference.status();
  replayed.difference = *std::move(difference);
  return replayed;
}

}  // namespace slipstream
