#ifndef SLIPSTREAM_SERVER_CORE_MEMBER_TABLE_H_
#define SLIPSTREAM_SERVER_CORE_MEMBER_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/run/shards.h"

namespace slipstream {

/// All that a shard knows of one member: a worker in one incarnation. It ends with the incarnation.
struct MemberRecord {
  /// An answered push, so that it is recognised when it comes again.
  struct Answer {
    Sequence sequence{};
    uint64_t checksum = 0;
    PushReply reply;
  };

  /// Answers kept: more than the pushes a worker may have in flight.
  static constexpr size_t kAnswersKept = 8;

  Incarnation incarnation{};

  /// The last push that was answered. Pushes count from 1 in each incarnation, without gaps.
  Sequence last_sequence{};

  /// The answers to the last pushes, newest last. Invariant: their sequences have no gaps and end
  /// with `last_sequence`; at most kAnswersKept, and fewer only where fewer pushes were answered.
  std::deque<Answer> answers;

  /// The version from which the member owes rounds a gradient or an excuse: 0 for a
  /// founding member, for others the version they first trained on. Nothing before that.
  std::optional<Version> owes_from;

  /// By slot, the versions that the member has been given to train on and has pushed no gradient of
  /// yet: the bases of the gradients on their way. What a worker pushes next is its own affair, so
  /// gradients are told apart by slots and not by sequences. Kept under a guard that blocks.
  /// Invariant: each slot is below the gradients that a worker may have in flight.
  std::map<uint32_t, Version> bases;

  /// The versions that the member was given to train on, by slot and age, until it pushes a
  /// gradient of the slot. A slot has several where it was answered again, as the repetition may be
  /// the one that comes late, or pulled anew: the first and the last ones are kept. They are noted
  /// where compensation uses base weights; the shell keeps the weights of these versions then.
  /// Invariant: each slot is below the gradients that a worker may have in flight, and has at most
  /// kBasesOfSlotMax versions.
  std::map<uint32_t, std::vector<Version>> given;

  /// The member's clock, as far as it has told here: it only rises.
  WorkerClock clock{};

  /// Others may have to wait for its clock: from the first one that it names until it rests.
  bool is_in_pace = false;

  /// The newest gradient pushed, also one that was dropped: one more than its last mini-batch, and
  /// the member's clock with it. 0 before the first.
  struct Newest {
    uint64_t batch_end = 0;
    WorkerClock clock{};
  };
  Newest newest;

  /// Pushes admitted and neither complete nor abandoned. Invariant: at most one more than the
  /// gradients that a worker may have in flight.
  uint32_t pushes_arriving = 0;

  /// Pulls served and not done. Invariant: at most 1.
  uint32_t pulls_under_way = 0;

  /// The next push expected.
  Sequence expected() const { return Next(last_sequence); }

  /// The answer to a push, nullptr if it is not kept.
  const Answer* FindAnswer(Sequence sequence) const;

  /// Uses up the expected sequence and keeps its answer.
  void RecordAnswer(Sequence sequence, uint64_t checksum, const PushReply& reply);

  /// The slot has been, or will be, given `base`. Of two answers to one pull the worker may use
  /// either, so the older base counts.
  void AddBase(uint32_t slot, Version base);

  std::optional<Version> FindBase(uint32_t slot) const;

  /// The member has work at hand, and its clock has come to `named`.
  void KeepPace(WorkerClock named) {
    clock = std::max(clock, named);
    is_in_pace = true;
  }

  /// Whether a gradient of another slot is on its way.
  bool HasBaseBeside(uint32_t slot) const;

  /// The slot has been given this version.
  void Give(uint32_t slot, Version version);

  /// A gradient of the slot arrives, which was computed from `base`: no other was used.
  void SettleBase(uint32_t slot, Version base);

  /// It may be the base of a gradient of this slot.
  bool WasGiven(uint32_t slot, Version version) const;

  /// No gradient of this slot is on its way any more.
  void EndBase(uint32_t slot) {
    bases.erase(slot);
    given.erase(slot);
  }
};

/// The members of the view that a shard has last seen, with a record each, in order of worker ids.
///
/// A push is (run, worker, incarnation, sequence). With the records a repeated push is recognised
/// by its checksum and answered as the first time (promises of `SEQ_REUSED`, `OUT_OF_SEQUENCE`,
/// `FENCED`). The table holds only members, and of those who left only the pulls that still run, so
/// it does not grow with steps.
///
/// Not thread-safe: one owner, which serialises calls.
class MemberTable {
 public:
  enum class Verdict {
    kFresh,          // The next one expected.
    kRepeated,       // Answered before: compare checksums.
    kTooOld,         // Answered before, but the answer is no longer kept.
    kGap,            // Not contiguous.
    kFenced,         // A newer incarnation is known, or the worker has left.
    kUnknownMember,  // Newer than any view seen here: the next view will tell.
  };

  /// Takes over the members of a view: who stays keeps the record, who is new or has a new
  /// incarnation begins an empty one. This is all that a change of members changes here.
  void InstallView(const View& view);
  const View& view() const { return view_; }

  Verdict Check(WorkerId worker, Incarnation incarnation, Sequence sequence) const;

  /// The newest incarnation that any view has had.
  Incarnation newest() const { return newest_; }

  /// Whether the identity is a member of the current view, as kFresh (it is), kFenced or
  /// kUnknownMember.
  Verdict CheckMember(WorkerId worker, Incarnation incarnation) const;

  /// The record of a member. REQUIRES: the worker is one.
  MemberRecord& At(WorkerId worker) { return records_.at(worker); }
  const MemberRecord& At(WorkerId worker) const { return records_.at(worker); }

  /// The record of this incarnation, nullptr if it is not a member.
  const MemberRecord* Find(WorkerId worker, Incarnation incarnation) const;

  /// `visit(worker, record)` for each member, in order of ids.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [worker, record] : records_) visit(worker, record);
  }

  /// The members whose record fulfils `predicate`, in order of ids.
  template <typename Predicate>
  std::vector<WorkerId> Where(Predicate predicate) const {
    std::vector<WorkerId> found;
    for (const auto& [worker, record] : records_) {
      if (predicate(record)) found.push_back(worker);
    }
    return found;
  }

  /// The least clock of the members in the pace; nothing if there are none.
  std::optional<WorkerClock> SlowestClock() const;

  /// The versions that slots were given, each once, by age.
  std::vector<Version> VersionsGiven() const;

  // Pulls under way, also of those who have left meanwhile.

  void BeginPull(WorkerId worker, Incarnation incarnation);

  /// REQUIRES: one of this incarnation was begun and has not ended.
  void EndPull(WorkerId worker, Incarnation incarnation);
  uint32_t PullsOf(WorkerId worker, Incarnation incarnation) const;
  uint32_t pulls_under_way() const;

  /// Ends the process if an invariant of the table or of a record does not hold.
  void CheckInvariants(uint32_t gradients_in_flight) const;

 private:
  View view_;

  // Invariant: one for each member of view_, of its incarnation.
  std::map<WorkerId, MemberRecord> records_;

  // Invariant: of none that is a member; no zeros.
  std::map<std::pair<WorkerId, Incarnation>, uint32_t> pulls_of_the_departed_;

  // Incarnations rise over the whole run, so one above this has not been in any view seen here.
  Incarnation newest_{};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_MEMBER_TABLE_H_
