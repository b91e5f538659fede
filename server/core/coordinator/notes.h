#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_NOTES_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_NOTES_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/log_line.h"

namespace slipstream {

/// The kind of thing that happened to a run, for those who ask later (RunEvents). Numbers are
/// saved.
enum class EventKind : uint8_t {
  kNone,  // Nothing that anybody asks about later.
  kWorker,
  kServer,
  kAggregator,
  kPhase,
  kChange,
  kCheckpoint,
  kEvaluation,
  kStraggler,
  kRefusal,
  kState,
};

/// Keeps notes of what happens to a run, for the log. They are bounded: whoever does not take them
/// loses the later ones, and each process is told of once for each reason for which it is refused.
///
/// Not thread-safe: one owner, which serialises calls.
class CoordinatorNotes {
 public:
  struct Note {
    EventKind kind = EventKind::kNone;
    bool is_warning = false;
    LogLine line;
  };

  void Add(Note note) {
    if (notes_.size() < kNotesMax) notes_.push_back(std::move(note));
  }
  void Add(EventKind kind, bool is_warning, std::string text, std::vector<LogField> fields = {}) {
    Add({kind, is_warning, LogLine(std::move(text), std::move(fields))});
  }

  /// Notes that the process `instance` was refused, unless that was noted before.
  void AddRefusal(std::string text, uint64_t instance, std::vector<LogField> fields,
                  const absl::Status& reason) {
    if (refusals_.size() >= kRefusalsMax) return;
    const std::string message(reason.message());
    if (!refusals_.emplace(instance, message).second) return;
    fields.emplace_back("reason", message);
    Add(EventKind::kRefusal, true, std::move(text), std::move(fields));
  }

  /// Returns the notes made since the last call.
  std::vector<Note> Take() { return std::exchange(notes_, {}); }

 private:
  /// More notes than one event causes.
  static constexpr size_t kNotesMax = 10'000;

  /// A server that is started again and again must not fill the memory.
  static constexpr size_t kRefusalsMax = 1000;

  std::vector<Note> notes_;
  std::set<std::pair<uint64_t, std::string>> refusals_;  // By process and reason.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_NOTES_H_
