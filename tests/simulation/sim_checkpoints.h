#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_CHECKPOINTS_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_CHECKPOINTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/saved_version.h"
#include "server/service/shard_save.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/network.h"

namespace slipstream {

struct SimCheckpoint {
  SavedVersion saved;
  std::string state;  // As EncodeShardState makes it.
  SavedValues values;
};

/// The disk of one shard's server. It outlives the server's processes. It plays the part of
/// CheckpointStore.
///
/// Not thread-safe: one owner.
class SimCheckpoints {
 public:
  /// Keeps the newest `keep`, and `safe` with all that are newer.
  void Add(SimCheckpoint checkpoint, uint32_t keep, const std::optional<SavedVersion>& safe);
  void RemoveAfter(const SavedVersion& from);

  /// Oldest first.
  std::vector<SavedVersion> saved() const;

  /// Returns null if there is no such checkpoint.
  const SimCheckpoint* Find(const SavedVersion& which) const;

 private:
  std::map<SavedVersion, SimCheckpoint> all_;
};

/// The checkpoints that one server process makes, one after another. Each takes a random time, and
/// is lost if the process is killed meanwhile.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the event queue's
/// last event.
class SimSaves {
 public:
  struct Options {
    absl::Duration time_max;
    uint32_t keep = 0;
    uint64_t seed = 0;
    uint64_t stream = 0;
  };
  SimSaves(const Options& options, const std::shared_ptr<Process>& process, EventQueue& queue,
           SimCheckpoints& disk);

  void Begin(const ShardSave& save);

  /// As SaveOrder::safe.
  void SetSafe(const std::optional<SavedVersion>& safe) { safe_ = safe; }

  /// Gives up all checkpoints that are not complete.
  void GiveUp();

  bool is_writing() const { return is_writing_; }

 private:
  void WriteNext();

  // Constant after construction.
  const Options options_;
  const std::shared_ptr<Process> process_;

  EventQueue& queue_;
  SimCheckpoints& disk_;
  Chance chance_;
  std::optional<SavedVersion> safe_;
  std::deque<SimCheckpoint> waiting_;  // The first is being written if is_writing_.
  bool is_writing_ = false;
  uint64_t writes_ = 0;  // Counts the writes begun or given up, so that one given up has no effect.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_CHECKPOINTS_H_
