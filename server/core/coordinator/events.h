#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_EVENTS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/coordinator/notes.h"

namespace slipstream {

/// Returns the kind's name for people: "worker", "server" and so on.
std::string_view Name(EventKind kind);

/// Something that happened to a run, and that people may ask about later.
struct RunEvent {
  /// Counts the events of the run from 1.
  uint64_t number = 0;

  /// The time of day, in milliseconds since 1970.
  int64_t time_ms = 0;
  EventKind kind = EventKind::kNone;
  bool is_warning = false;
  std::string text;

  /// Whom it happened to, if it happened to one of them.
  std::optional<WorkerId> worker;
  std::optional<ShardId> shard;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.number, self.time_ms, self.kind, self.is_warning, self.text, self.worker,
            self.shard);
  }
};

/// The newest events of a run, made of the notes that have a kind.
///
/// A member that comes and goes all the time must not push out what happened to the others. So
/// where there are too many, the oldest goes of whoever has the most of a kind: a worker, a shard,
/// or, for events of neither, the run.
///
/// Not thread-safe: one owner, which serialises calls.
class RunEvents {
 public:
  static constexpr size_t kMax = 128;
  static constexpr size_t kTextBytesMax = 512;

  /// Adds the note, unless it is of no kind.
  void Add(const CoordinatorNotes::Note& note, absl::Time time_of_day);

  /// The newest event is always the last.
  const std::deque<RunEvent>& all() const { return events_; }

  /// Returns whether what Parts has read is such as Add makes.
  bool IsSound() const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.newest_, self.events_);
  }

 private:
  uint64_t newest_ = 0;
  std::deque<RunEvent> events_;  // By number.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_EVENTS_H_
