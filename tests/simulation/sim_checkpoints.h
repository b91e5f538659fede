#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_CHECKPOINTS_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_CHECKPOINTS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "deploy/lab/event_queue.h"
#include "server/core/orders.h"
#include "server/core/saved_version.h"
#include "server/data_plane/shard_save.h"
#include "server/storage/checkpoint_store.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/network.h"

namespace slipstream {

/// The checkpoints that one server process makes, one after another: CheckpointWriter in virtual
/// time. Each takes a random time. Of several that wait, only the newest is written, and one that
/// could not be written is tried again.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the event queue's
/// last event.
class SimSaves {
 public:
  struct Options {
    ShardId shard{};
    absl::Duration time_max;
    uint32_t keep = 0;
    uint64_t seed = 0;
    uint64_t stream = 0;
  };
  SimSaves(const Options& options, const std::shared_ptr<Process>& process, EventQueue& queue);

  /// Names the place for checkpoints and the model. Both have to be known before the first one.
  /// `store` must outlive the process.
  void SetStore(CheckpointStore& store) { store_ = &store; }
  void SetModel(const ModelOrders& model);

  void Begin(std::shared_ptr<const ShardSave> save);

  /// As SaveOrder::safe.
  void SetSafe(const std::optional<SavedVersion>& safe) { safe_ = safe; }

  /// Gives up all checkpoints that are not complete.
  void GiveUp();

  /// The process has ended, and its disk makes the last calls: tries to write the checkpoint under
  /// way.
  void End();

  bool is_writing() const { return is_writing_; }

  /// Whether the last try to write one has failed.
  bool has_failed() const { return has_failed_; }

  /// Returns whether the initial weights of this grant were saved by this process.
  bool HasSavedInitial(uint64_t grant) const { return saved_grant_ == grant; }

 private:
  void WriteNext();
  void OnTime();
  absl::Status Write();

  // Constant after construction.
  const Options options_;
  const std::shared_ptr<Process> process_;

  EventQueue& queue_;
  Chance chance_;
  CheckpointStore* store_ = nullptr;
  std::optional<TensorLayout> tensors_;
  ParameterRange range_;
  std::optional<SavedVersion> safe_;
  std::shared_ptr<const ShardSave> next_;
  std::shared_ptr<const ShardSave> current_;  // The one being written; null if none is.
  bool is_writing_ = false;
  bool has_failed_ = false;
  std::optional<uint64_t> saved_grant_;
  uint64_t writes_ = 0;  // Counts the writes begun or given up, so that one given up has no effect.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_CHECKPOINTS_H_
