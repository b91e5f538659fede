#ifndef SLIPSTREAM_COMMON_SETTINGS_DURABILITY_SPEC_H_
#define SLIPSTREAM_COMMON_SETTINGS_DURABILITY_SPEC_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace slipstream {

/// How much of a shard survives the end of its server.
struct DurabilitySpec {
  /// kMemory: nothing. kCheckpoint: what the shard's last checkpoint holds. kSynced: whatever the
  /// shard has told anybody; it is in the shard's log, on the disk, before.
  enum class Level { kMemory, kCheckpoint, kSynced };
  Level level = Level::kMemory;

  /// The directory for the checkpoints of every server; empty for none. Server-local.
  std::string directory;

  /// The time from one checkpoint to the next.
  absl::Duration interval = absl::Seconds(10);

  /// How many of its newest checkpoints a shard keeps. At least 2, as the newest may be damaged.
  uint32_t keep = 3;

  /// Whether a run that has finished stays finished when its servers are started again. If not,
  /// they begin a new run.
  bool once = false;

  bool saves() const { return level != Level::kMemory; }
  bool keeps_log() const { return level == Level::kSynced; }

  friend bool operator==(const DurabilitySpec&, const DurabilitySpec&) = default;
};

/// The values that a run begins with, if they are those of a checkpoint of another run.
struct StartSpec {
  /// A directory of that run's checkpoints, or one below it; empty if the run begins with the
  /// weights that a client brings. Server-local.
  std::string checkpoint;

  /// Whether the optimizer goes on from its state there, too. Then its kind is the same.
  bool optimizer_state = true;

  friend bool operator==(const StartSpec&, const StartSpec&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_DURABILITY_SPEC_H_
