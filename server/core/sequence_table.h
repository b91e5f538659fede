#ifndef SLIPSTREAM_SERVER_CORE_SEQUENCE_TABLE_H_
#define SLIPSTREAM_SERVER_CORE_SEQUENCE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"

namespace slipstream {

/// Who may push, and which of their pushes have been answered: what makes a push count once.
///
/// A push is (run, worker, incarnation, sequence). The table keeps, for each member of the current
/// view, the last sequence and the answers to the last few pushes, so that a repeated push is
/// recognised by its checksum and answered as the first time (promises of `SEQ_REUSED`,
/// `OUT_OF_SEQUENCE`, `FENCED`). It holds only members, so it does not grow with steps.
///
/// Not thread-safe: one owner, which serialises calls.
class SequenceTable {
 public:
  /// Answers kept per member: more than the pushes a worker may have in flight.
  static constexpr size_t kAnswersKept = 8;

  enum class Verdict {
    kFresh,          // The next one expected.
    kRepeated,       // Answered before: compare checksums.
    kTooOld,         // Answered before, but the answer is no longer kept.
    kGap,            // Not contiguous.
    kFenced,         // A newer incarnation is known, or the worker has left.
    kUnknownMember,  // Newer than any view seen here: the next view will tell.
  };

  /// Takes over the members of a view; a member with a new incarnation starts at sequence 1.
  void InstallView(const View& view);

  Verdict Check(WorkerId worker, Incarnation incarnation, Sequence sequence) const;

  /// Whether the identity is a member of the current view, as kFresh (it is), kFenced or
  /// kUnknownMember.
  Verdict CheckMember(WorkerId worker, Incarnation incarnation) const;

  /// The answer recorded for a repeated push, nullptr if its payload was another.
  /// REQUIRES: Check said kRepeated.
  const PushReply* FindAnswer(WorkerId worker, Sequence sequence, uint64_t checksum) const;

  /// Uses up the sequence and keeps its answer. REQUIRES: Check said kFresh.
  void Record(WorkerId worker, Sequence sequence, uint64_t checksum, const PushReply& answer);

  /// The sequence expected next. REQUIRES: the worker is a member.
  Sequence Expected(WorkerId worker) const { return Next(entries_.at(worker).last); }

 private:
  struct Answer {
    Sequence sequence{};
    uint64_t checksum = 0;
    PushReply reply;
  };
  struct Entry {
    Incarnation incarnation{};
    Sequence last{};
    std::deque<Answer> answers;  // Newest last.
  };

  const Answer* Find(WorkerId worker, Sequence sequence) const;

  std::map<WorkerId, Entry> entries_;

  // Incarnations rise over the whole run, so one above this has not been in any view seen here.
  Incarnation newest_{};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SEQUENCE_TABLE_H_
