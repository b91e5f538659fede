#ifndef SLIPSTREAM_SERVER_CORE_SHARD_MEMBER_TABLE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_MEMBER_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/settings/shards.h"

namespace slipstream {

/// All that a shard knows about one member, which is a worker in one incarnation. The record ends
/// with the incarnation.
struct MemberRecord {
  /// An answered push, kept so that a repetition is recognised.
  struct Answer {
    Sequence sequence{};
    uint64_t checksum = 0;
    PushReply reply;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.sequence, self.checksum, self.reply);
    }
  };

  /// How many answers are kept: more than the pushes that a worker may have in flight.
  static constexpr size_t kAnswersKept = 8;

  Incarnation incarnation{};

  /// The last push that was answered. Pushes count from 1 in each incarnation, without gaps.
  Sequence last_sequence{};

  /// The answers to the last pushes, newest last. Invariant: their sequences have no gaps and end
  /// with `last_sequence`; at most kAnswersKept, and fewer only where fewer pushes were answered.
  std::deque<Answer> answers;

  /// The answers of an earlier generation to pushes that are part of the weights with which this
  /// generation began: a worker may not have heard them. None of later generations are kept beside
  /// them, as a worker waits for each answer before it goes on.
  struct Former {
    Generation generation{};
    std::deque<Answer> answers;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.generation, self.answers);
    }
  };
  Former former;

  /// The version from which on the member owes each round a gradient or an excuse: 0 for a founding
  /// member, for others the version that they first trained on. Empty before that.
  std::optional<Version> owes_from;

  /// The bases of the gradients on their way, by slot: versions that the member was given to train
  /// on and has not yet pushed a gradient for. Gradients are told apart by slots and not by
  /// sequences, because the shard cannot know what a worker pushes next. Kept under a guard that
  /// blocks. Invariant: each slot is below the number of gradients that a worker may have in
  /// flight.
  std::map<uint32_t, Version> bases;

  /// The versions that the member was given to train on, by slot and age, until it pushes a
  /// gradient of the slot. A slot has several if its pull was answered again (the worker may use
  /// either answer) or if it pulled anew: the first and the last ones are kept. They are noted
  /// where compensation uses base weights; the shell then keeps the weights of these versions.
  /// Invariant: each slot is below the number of gradients that a worker may have in flight, and
  /// has at most kBasesOfSlotMax versions.
  std::map<uint32_t, std::vector<Version>> given;

  /// The newest clock that the member has told this shard. It only rises.
  WorkerClock clock{};

  /// Set while others may have to wait for the member's clock: from the first clock that it names
  /// until it rests.
  bool is_in_pace = false;

  /// The newest gradient that the member pushed, even if it was dropped. `batch_end` is one more
  /// than its last mini-batch, `clock` the member's clock at that push; both are 0 before the
  /// first.
  struct Newest {
    uint64_t batch_end = 0;
    WorkerClock clock{};

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.batch_end, self.clock);
    }
  };
  Newest newest;

  /// The number of its own pushes that were admitted and are neither complete nor abandoned.
  /// Invariant: at most one more than the gradients that a worker may have in flight.
  uint32_t pushes_arriving = 0;

  /// The number of pulls that are served and not done. Invariant: at most 1.
  uint32_t pulls_under_way = 0;

  /// Returns the sequence of the next push.
  Sequence expected() const { return Next(last_sequence); }

  /// Returns the answer to a push, nullptr if it is not kept.
  const Answer* FindAnswer(Sequence sequence) const;

  /// Returns the answer that a push got in an earlier generation; nullptr if it is not kept.
  const Answer* FindFormer(Generation generation, Sequence sequence) const;

  /// Uses up the expected sequence and keeps the answer to its push.
  void RecordAnswer(Sequence sequence, uint64_t checksum, const PushReply& reply);

  /// Notes that the slot has been, or will be, given `base`. If one pull has two answers, the
  /// worker may use either, so the older base counts.
  void AddBase(uint32_t slot, Version base);

  std::optional<Version> FindBase(uint32_t slot) const;

  /// Returns the oldest of `bases`; nothing if there are none.
  std::optional<Version> OldestBase() const;

  /// Notes that from this version on the member owes rounds a gradient or an excuse. Returns false,
  /// without effect, if it did already.
  bool OweFrom(Version version) {
    if (owes_from.has_value()) return false;
    owes_from = version;
    return true;
  }

  /// Notes that the member has work at hand and that its clock has reached `named`.
  void KeepPace(WorkerClock named) {
    clock = std::max(clock, named);
    is_in_pace = true;
  }

  /// Returns whether a gradient of another slot is on its way.
  bool HasBaseBeside(uint32_t slot) const;

  /// Notes that the slot has been given this version.
  void Give(uint32_t slot, Version version);

  /// Notes that a gradient of the slot arrives which was computed from `base`. The other versions
  /// that the slot was given are forgotten.
  void SettleBase(uint32_t slot, Version base);

  /// Returns whether this version may be the base of a gradient of this slot.
  bool WasGiven(uint32_t slot, Version version) const;

  /// Notes that no gradient of this slot is on its way any more.
  void EndBase(uint32_t slot) {
    bases.erase(slot);
    given.erase(slot);
  }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.incarnation, self.last_sequence, self.answers, self.owes_from, self.bases,
            self.given, self.clock, self.is_in_pace, self.newest, self.pushes_arriving,
            self.pulls_under_way, self.former);
  }
};

/// The members of the newest view that a shard has seen, with a record each, in order of worker
/// ids.
///
/// A push is identified by (run, worker, incarnation, sequence). With the records a repeated push
/// is recognised by its checksum and answered as the first time (promises of `SEQ_REUSED`,
/// `OUT_OF_SEQUENCE`, `FENCED`). The table holds only members, and for workers that left only the
/// pulls that still run, so it does not grow with the number of steps.
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
    kUnknownMember,  // Newer than any view seen here: a later view may have it.
  };

  /// Takes over the members of a view. A worker that stays keeps its record; one that is new or has
  /// a new incarnation gets an empty record. A change of members changes nothing else here.
  void InstallView(const View& view);
  const View& view() const { return view_; }

  /// Begins a later generation of the shard, to which no sequence, base or call of the generation
  /// `before` belongs. The members stay. Each is out of the pace until it names its clock again: it
  /// may have said that it rests after the state was saved, and would not say so twice.
  void BeginGeneration(Generation before);

  /// Notes that the process has ended, and with it all pushes and pulls under way.
  void EndCalls();

  /// Forgets the answers to pushes that are to be part of a later version than this: they are lost.
  void ForgetAnswersAfter(Version version);

  Verdict Check(WorkerId worker, Incarnation incarnation, Sequence sequence) const;

  /// The newest incarnation that any view so far has had.
  Incarnation newest() const { return newest_; }

  /// Returns kFresh if the identity is a member of the current view, else kFenced or
  /// kUnknownMember.
  Verdict CheckMember(WorkerId worker, Incarnation incarnation) const;

  /// Returns the record of a member. What the functions below change, they alone may change.
  /// REQUIRES: the worker is a member.
  MemberRecord& At(WorkerId worker) { return records_.at(worker); }
  const MemberRecord& At(WorkerId worker) const { return records_.at(worker); }

  // Change a member's record as the functions of the same names say, and what the table counts.
  // REQUIRE: the worker is a member.

  void KeepPace(WorkerId worker, WorkerClock named);

  /// Takes the member out of the pace.
  void Rest(WorkerId worker);
  void AddBase(WorkerId worker, uint32_t slot, Version base);
  void Give(WorkerId worker, uint32_t slot, Version version);
  void SettleBase(WorkerId worker, uint32_t slot, Version base);
  void EndBase(WorkerId worker, uint32_t slot);

  /// Returns the record of this incarnation, nullptr if it is not a member.
  const MemberRecord* Find(WorkerId worker, Incarnation incarnation) const;

  /// Calls `visit(worker, record)` for each member, in order of ids.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [worker, record] : records_) visit(worker, record);
  }

  /// Returns the members whose record fulfils `predicate`, in order of ids.
  template <typename Predicate>
  std::vector<WorkerId> Where(Predicate predicate) const {
    std::vector<WorkerId> found;
    for (const auto& [worker, record] : records_) {
      if (predicate(record)) found.push_back(worker);
    }
    return found;
  }

  /// Returns the highest clock of all members, in the pace or not; 0 if there are none.
  WorkerClock NewestClock() const;

  /// Takes all members out of the pace.
  void RestAll();

  /// Returns the least clock of the members that are in the pace; nothing if there are none.
  std::optional<WorkerClock> SlowestClock() const { return LeastOf(in_pace_); }

  /// Returns the oldest base of the gradients on their way; nothing if there are none.
  std::optional<Version> OldestBase() const { return LeastOf(on_their_way_); }

  /// Returns the versions that slots were given, each once, by age.
  std::vector<Version> VersionsGiven() const;
  bool IsGiven(Version version) const { return given_.contains(version); }

  /// Returns the versions that slots were given once and are not any more, since the last call or
  /// since the table was read from a file.
  std::set<Version> TakeReleased() { return std::exchange(released_, {}); }

  // Count the pulls under way, also those of workers that have left meanwhile.

  void BeginPull(WorkerId worker, Incarnation incarnation);

  /// REQUIRES: a pull of this incarnation was begun and has not ended.
  void EndPull(WorkerId worker, Incarnation incarnation);
  uint32_t PullsOf(WorkerId worker, Incarnation incarnation) const;
  uint32_t pulls_under_way() const;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.view_, self.records_, self.pulls_of_the_departed_, self.newest_);
    if constexpr (!std::is_const_v<Self>) self.CountAll();
  }

  /// Names what contradicts itself in a table that was read from a file, or what no member can have
  /// if each has so many gradients in flight at most. Empty if the table can be used.
  std::string Fault(uint32_t gradients_in_flight) const;

  /// For tests: ends the process if an invariant of the table or of a record does not hold.
  void CheckInvariants(uint32_t gradients_in_flight) const;

 private:
  /// How many members, or slots, have each value. Invariant: no count is 0.
  template <typename Value>
  using Counts = std::map<Value, uint32_t>;

  template <typename Value>
  static std::optional<Value> LeastOf(const Counts<Value>& counts) {
    return counts.empty() ? std::nullopt : std::optional(counts.begin()->first);
  }

  /// Returns the sum of the records, as the counts below have it.
  Counts<WorkerClock> CountPace() const;
  Counts<Version> CountBases() const;
  Counts<Version> CountGiven() const;

  /// Makes the counts anew.
  void CountAll();

  /// Counts the versions that a slot was given, or takes them out of the count.
  void CountGiven(const MemberRecord& record, uint32_t slot);
  void UncountGiven(const MemberRecord& record, uint32_t slot);

  View view_;

  // Invariant: there is one record for each member of view_, with its incarnation.
  std::map<WorkerId, MemberRecord> records_;

  // The pulls under way of workers that left. Invariant: no key is a member, and no value is 0.
  std::map<std::pair<WorkerId, Incarnation>, uint32_t> pulls_of_the_departed_;

  // Incarnations rise over the whole run, so a higher one has not been in any view seen here.
  Incarnation newest_{};

  // The members in the pace by clock, the gradients on their way by base, and the slots by the
  // versions that they were given. Counted, as each push asks for the least of them. Not saved.
  Counts<WorkerClock> in_pace_;
  Counts<Version> on_their_way_;
  Counts<Version> given_;

  // As TakeReleased() says. Invariant: none of them is in given_.
  std::set<Version> released_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_MEMBER_TABLE_H_
