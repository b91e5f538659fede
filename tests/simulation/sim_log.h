#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_LOG_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_LOG_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "deploy/lab/event_queue.h"
#include "server/data_plane/shard_log.h"
#include "server/data_plane/shard_recorder.h"
#include "server/storage/log_segment.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/held_effects.h"
#include "tests/simulation/network.h"
#include "tests/simulation/sim_disk.h"

namespace slipstream {

/// The log that one server process writes, and all that may leave the process only once the log is
/// on the disk. In virtual time: all events that come while one
/// batch is written make the next one, and events are written once something waits for them. The
/// files are production's, and a batch is written all at once when its time is over.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the event queue's
/// last event.
class SimLog final : public ShardRecorder {
 public:
  struct Options {
    std::string directory;
    uint64_t last_segment = 0;

    /// The number of events that earlier processes have left.
    uint64_t events_before = 0;

    /// The longest time of one batch.
    absl::Duration time_max;
    uint64_t seed = 0;
    uint64_t stream = 0;

    /// Called once at most, when a write has failed.
    std::function<void(const absl::Status&)> on_failure;
  };
  SimLog(const Options& options, const std::shared_ptr<Process>& process, EventQueue& queue,
         SimDisk& disk);

  void Record(std::string event,
              std::vector<std::shared_ptr<const ReceivedValues>> payload) override;
  uint64_t BeginSegment() override;

  /// As HeldEffects::Hold, for the events recorded and the segments begun so far.
  void Leave(std::function<void()> effect, std::function<void()> lost) {
    effects_.Hold(entries_, std::move(effect), std::move(lost));
    WriteIfNeeded();
  }

  /// The number of the event recorded last.
  uint64_t events() const { return events_; }
  bool is_writing() const { return is_writing_; }

  /// Whether a segment was begun that is not on the disk.
  bool has_new_segment() const { return last_segment_ != open_segment_; }

  /// The process has ended, and its disk makes the last calls: tries to write the batch under way,
  /// and loses all effects.
  void End();

 private:
  /// An event, or the beginning of a segment.
  struct Entry {
    uint64_t begins_segment = 0;  // The segment's number; 0 for an event.
    EventsOfLog::Event event;
  };

  void Add(Entry entry);

  /// Begins the next batch if something waits for it, and none is being written.
  void WriteIfNeeded();
  void Write();
  void OnTime();
  absl::Status WriteBatch();
  absl::Status BeginSegmentNow(uint64_t number);

  // Constant after construction.
  const Options options_;
  const std::shared_ptr<Process> process_;

  EventQueue& queue_;
  SimDisk& disk_;
  Chance chance_;
  uint64_t last_segment_ = 0;
  uint64_t events_ = 0;
  uint64_t entries_ = 0;  // The events of this process and its segments.

  uint64_t open_segment_ = 0;               // The segment that `writer_` writes.
  std::optional<LogSegmentWriter> writer_;  // Empty before this process's first segment.

  std::deque<Entry> waiting_;
  std::vector<Entry> batch_;  // All of one segment; being written if is_writing_.
  bool is_writing_ = false;
  HeldEffects effects_;  // They wait for entries.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_LOG_H_
