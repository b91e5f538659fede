#ifndef SLIPSTREAM_SERVER_DATA_PLANE_CHECKPOINT_WRITER_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_CHECKPOINT_WRITER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/layout/tensor_parts.h"
#include "proto/status.pb.h"
#include "server/core/saved_version.h"
#include "server/data_plane/shard_save.h"
#include "server/storage/checkpoint_store.h"

namespace slipstream {

/// Writes the checkpoints of one shard on a thread of its own, one after another. No update waits
/// for the disk: what is saved shares its values with the shard. If a checkpoint cannot be written,
/// the older ones stay and the run goes on.
///
/// Thread-safe: guarded by its own mutex, which is never held while a file is written.
class CheckpointWriter {
 public:
  /// How long after a write that failed the next one is tried.
  static constexpr absl::Duration kPauseAfterFailure = absl::Seconds(5);

  struct Options {
    ShardId shard{};

    /// How many checkpoints are kept.
    uint32_t keep = 3;

    /// The clock, for status; must not go back.
    std::function<absl::Time()> now;
  };

  CheckpointWriter(Options options, std::unique_ptr<CheckpointStore> store);

  /// Completes the checkpoint that it writes; one that waits is dropped.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Names the model, which has to be known before anything is saved.
  void SetModel(const TensorLayout& layout, const ParameterRange& range);

  /// Queues a checkpoint. Of several that wait, only the newest is written. One that could not be
  /// written is tried again until it can or a newer one comes. REQUIRES: the model is known.
  void Write(std::shared_ptr<const ShardSave> save);

  /// Keeps this checkpoint until a newer one is named.
  void Keep(const std::optional<SavedVersion>& safe);

  /// Returns the checkpoints that the shard can go on from, oldest first.
  std::vector<SavedVersion> saved() const { return store_->saved(); }

  /// Returns whether the initial weights of this grant were saved by this process.
  bool HasSavedInitial(uint64_t grant);

  /// Returns whether the last try to write one has failed.
  bool has_failed();

  /// The place of the checkpoints. A call that reads or removes some REQUIRES: nothing is being
  /// written, see StopWriting.
  CheckpointStore& store() { return *store_; }

  /// Returns whether this version is saved, or the last try to save one has failed.
  bool HasOrCannotWrite(Generation generation, Version version);

  /// Gives up what waits to be written, and waits for what is being written. Nothing is written
  /// until Write is called again.
  void StopWriting();

  /// Removes the checkpoints that are newer than `from`, to which the shard has returned.
  void RemoveAfter(const SavedVersion& from);

  /// Waits until nothing waits to be written, at most until `end`.
  void Finish(std::chrono::steady_clock::time_point end);

  /// Returns OK if the last checkpoint that was asked for is on the disk, and else DATA_LOSS with
  /// the directory and the reason: what came after the checkpoint before it is lost with the
  /// process.
  absl::Status LastSave();

  /// Returns whether a checkpoint is being written, or could not be and is tried again.
  bool is_writing();

  /// Describes the newest checkpoint, and the last failure.
  void Describe(v1::ShardStatus& status);

 private:
  void Run();
  absl::Status WriteNow(const ShardSave& save);

  // Constant after construction.
  const Options options_;
  const std::unique_ptr<CheckpointStore> store_;

  Mutex mutex_;
  CondVar changed_;
  std::optional<TensorLayout> tensors_ ABSL_GUARDED_BY(mutex_);
  ParameterRange range_ ABSL_GUARDED_BY(mutex_){};
  std::shared_ptr<const ShardSave> next_ ABSL_GUARDED_BY(mutex_);
  std::optional<SavedVersion> safe_ ABSL_GUARDED_BY(mutex_);
  std::optional<uint64_t> saved_grant_ ABSL_GUARDED_BY(mutex_);  // Of the newest one written.
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_given_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  // For status: the newest checkpoint that this process has written, and why the last one failed.
  v1::CheckpointStatus newest_ ABSL_GUARDED_BY(mutex_);
  absl::Time written_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string failure_ ABSL_GUARDED_BY(mutex_);
  uint64_t failures_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<uint64_t> free_bytes_ ABSL_GUARDED_BY(mutex_);  // After the last try.

  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_CHECKPOINT_WRITER_H_
