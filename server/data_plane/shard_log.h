#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARD_LOG_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARD_LOG_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/wire/values_codec.h"
#include "proto/status.pb.h"
#include "server/data_plane/shard_recorder.h"
#include "server/status/time_counts.h"
#include "server/storage/disk.h"
#include "server/storage/log_segment.h"

namespace slipstream {

/// Takes the records of a segment, and puts the events together again. A record is a byte that
/// tells its kind, and behind it a piece of a push's payload, or an event. The pieces of a payload
/// come before the event that they belong to.
///
/// Not thread-safe: one owner.
class EventsOfLog {
 public:
  struct Event {
    std::string event;
    std::vector<std::shared_ptr<const ReceivedValues>> payload;
  };

  /// Returns the event that this record completes; nothing if more records belong to it. DATA_LOSS
  /// if no ShardLog writes such a record.
  absl::StatusOr<std::optional<Event>> Add(std::span<const std::byte> record);

 private:
  std::vector<std::shared_ptr<const ReceivedValues>> payload_;  // Of the event that follows.
};

/// Adds the records that EventsOfLog takes for an event. They lie in `event`.
void AddRecords(const EventsOfLog::Event& event, std::vector<LogSegmentWriter::Record>& records);

/// Writes a shard's log on a thread of its own. All events that came while one batch was written
/// make the next one (group commit). Payloads are written from where they lie, and are shared with
/// the shard meanwhile.
///
/// A batch costs a sync, whatever its size, and delays the next one. So events are written once
/// somebody waits for one of them (Need), or once there are kBytesWorthASync of them, or at the end
/// of the log. The beginning of a segment is needed at once.
///
/// After a write that failed, or that takes too long, it writes nothing any more: nobody knows what
/// is on the disk, and what was not written must never be told. Its owner has to end the process.
///
/// It takes whatever is recorded, so its owner bounds what waits to be written: see bytes_waiting.
///
/// Thread-safe: guarded by its own mutex, which is never held while a file is written.
class ShardLog final : public ShardRecorder {
 public:
  struct Options {
    /// The place of the log.
    std::string directory;

    /// The segment that the log begins with is the next one.
    uint64_t last_segment = 0;

    /// Called on the log's thread when `synced` has risen.
    std::function<void(uint64_t synced)> on_synced;

    /// Called once at most, when a write has failed, on the log's thread; or when one takes longer
    /// than `write_time_max`, on a thread that waits for the log. The status names the file.
    std::function<void(const absl::Status&)> on_failure;

    /// How long one write, with its sync, may take. While a disk is only slow, what waits for it
    /// may take much longer.
    std::chrono::milliseconds write_time_max{60'000};
  };

  /// `disk` must outlive it.
  ShardLog(Options options, Disk& disk);

  /// Writes what was recorded, and closes the segment. If a write takes too long, on_failure is
  /// called, and the destructor waits on.
  ~ShardLog() override;
  ShardLog(const ShardLog&) = delete;
  ShardLog& operator=(const ShardLog&) = delete;

  void Record(std::string event,
              std::vector<std::shared_ptr<const ReceivedValues>> payload) override;
  uint64_t BeginSegment() override;

  /// So many bytes of events are written although nobody waits for them. A disk takes hardly longer
  /// for them than for a sync of less.
  static constexpr size_t kBytesWorthASync = size_t{1} << 20;

  /// Has the first `events` events written, because somebody waits for them. REQUIRES: so many were
  /// recorded.
  void Need(uint64_t events);

  /// The number of events recorded, and how many of these are on the disk. The beginning of a
  /// segment counts as one: the segment has its name then.
  uint64_t recorded() const;
  uint64_t synced() const;

  /// Returns the bytes of the recorded events that are not on the disk, payloads included.
  uint64_t bytes_waiting() const;

  enum class Wait : uint8_t {
    kSynced,
    kLate,    // The events are not on the disk yet.
    kFailed,  // They never will be. on_failure is called, or was.
  };

  /// Waits until so many events are on the disk, at most until `end`. They are needed.
  Wait AwaitSynced(uint64_t events, std::chrono::steady_clock::time_point end);

  /// Describes what was written, all but LogStatus::events_redone.
  void Describe(v1::ShardStatus& status) const;

 private:
  using Clock = std::chrono::steady_clock;

  /// An event, or the beginning of a segment.
  struct Entry {
    uint64_t begins_segment = 0;  // The segment's number; 0 for an event.
    EventsOfLog::Event event;
    Clock::time_point recorded_at;

    size_t bytes() const;
  };

  void Add(Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteNeed(uint64_t events) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Wakes the thread if what waits has to be written, and notes since when.
  void WakeIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDue() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();

  /// Returns when the write at hand, or one that begins now, has taken too long.
  Clock::time_point WriteEnd() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return write_begun_.value_or(Clock::now()) + options_.write_time_max;
  }
  bool IsStuck() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !has_failed_ && write_begun_.has_value() && WriteEnd() <= Clock::now();
  }

  /// Waits until the thread writes nothing any more, or a write takes too long.
  void AwaitEnd();

  /// Fails because the write at hand takes too long.
  void GiveUpWrite();

  /// Takes about kBatchBytes of what waits: events of one segment, after its beginning.
  std::vector<Entry> TakeBatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write(const std::vector<Entry>& batch);
  absl::Status BeginSegmentNow(uint64_t number);

  /// Notes that a batch is on the disk, and frees it. Returns how much is there now; nothing if the
  /// log has failed meanwhile.
  std::optional<uint64_t> NoteSynced(std::vector<Entry> batch);

  /// Closes the last segment.
  void Close();
  void Fail(const absl::Status& failure);

  // Constant after construction.
  const Options options_;
  Disk& disk_;

  // Owned by the thread.
  std::optional<LogSegmentWriter> segment_;  // Empty before the first.
  uint64_t closed_bytes_ = 0;                // The bytes of the segments before.

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> pending_ ABSL_GUARDED_BY(mutex_);
  uint64_t pending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t needed_ ABSL_GUARDED_BY(mutex_) = 0;  // How many events somebody waits for.

  // Since when the pending entries have to be written; empty if they need not be.
  std::optional<Clock::time_point> due_since_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_segment_ ABSL_GUARDED_BY(mutex_);
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_failed_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;  // The thread writes nothing any more.

  // When the write at hand was begun, since when somebody waited for it, and its segment.
  std::optional<Clock::time_point> write_begun_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point write_due_ ABSL_GUARDED_BY(mutex_);
  uint64_t written_segment_ ABSL_GUARDED_BY(mutex_) = 0;

  uint64_t bytes_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t recorded_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t synced_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::LogStatus written_ ABSL_GUARDED_BY(mutex_);
  TimeCounts sync_times_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARD_LOG_H_
