// The part of ShardCore that decides about complete pushes.

#include <string>
#include <utility>

#include "common/base/check.h"
#include "server/core/shard_core.h"

namespace slipstream {

PushDecision ShardCore::OnPush(const PushFacts& push) {
  NoteArrival(push.header);
  // Again: the view or the sequence may have moved on while the payload came.
  std::optional<PushReply> refusal = RefuseByHeader(push.header);
  if (!refusal) refusal = RefuseByPayload(push);
  if (refusal) return {.reply = Counted(*std::move(refusal))};
  const Identity& identity = push.header.identity;
  if (push.header.sequence != members_.At(identity.worker).expected()) {
    const MemberRecord::Answer* first =
        members_.At(identity.worker).FindAnswer(push.header.sequence);
    PS_CHECK(first != nullptr);  // RefuseByHeader saw to it.
    if (first->checksum == push.checksum) return AnswerAgain(push, first->reply);
    return {.reply = Counted(Refusal(PushOutcome::kSequenceReused,
                                     "sequence " + std::to_string(Value(push.header.sequence)) +
                                         " was used for another payload"))};
  }
  if (WorkIsDone()) return DropLate(push, "the run's work is done");
  if (is_synchronous() && round_.HasHeardFrom(identity.worker)) {
    return DropLate(push, "the open round has this worker's gradient already");
  }
  const RoundPolicy::PushFacts facts = {Value(push.header.base), Value(decided_)};
  if (policy_.DecidePush(facts) == RoundPolicy::PushDecision::kDropLate) {
    return DropLate(push, "its round closed without it");
  }
  if (!is_synchronous() && IsExcuse(push.header)) return GiveUpPull(push);
  if (auto too_stale = RefuseByGuard(push.header)) return {.reply = Counted(*std::move(too_stale))};
  if (!is_synchronous() &&
      guard_.Judge(StalenessOf(push.header)) == StalenessGuard::Verdict::kDrop) {
    ++guard_counts_.dropped;
    return DropLate(push, "its staleness exceeds the bound " + std::to_string(guard_.spec().bound));
  }
  return JoinRound(push);
}

PushDecision ShardCore::GiveUpPull(const PushFacts& push) {
  const PushHeader& header = push.header;
  MemberRecord& member = members_.At(header.identity.worker);
  PushDecision decision = {.took_effect = true};
  decision.reply.outcome = PushOutcome::kBuffered;
  decision.reply.version = decided_;
  member.bases.erase(header.slot);
  Advance(decision.effects);
  ++outcomes_[decision.reply.outcome];
  member.RecordAnswer(header.sequence, push.checksum, decision.reply);
  if (header.pull) Finish(push, decided_, decision);
  return decision;
}

PushDecision ShardCore::AnswerAgain(const PushFacts& push, const PushReply& first) {
  ++outcomes_[PushOutcome::kDuplicate];
  PushDecision decision = {.reply = first};
  decision.reply.outcome = PushOutcome::kDuplicate;
  // What the first answer waited for may not be published yet.
  if (push.header.pull || first.outcome == PushOutcome::kApplied) {
    // A round that is held back will still make the version that was promised.
    const bool is_promised = is_synchronous() || first.outcome == PushOutcome::kApplied;
    const Version at_least = is_synchronous() ? Version{} : decided_;
    Finish(push, is_promised ? std::max(first.version, at_least) : decided_, decision);
  }
  return decision;
}

PushDecision ShardCore::DropLate(const PushFacts& push, std::string message) {
  MemberRecord& member = members_.At(push.header.identity.worker);
  NoteBatch(push.header);
  PushDecision decision = {.took_effect = true};
  decision.reply.outcome = PushOutcome::kDroppedLate;
  decision.reply.staleness = StalenessOf(push.header);
  decision.reply.message = std::move(message);
  // A second gradient for an open round waits for its end: there is nothing to compute before.
  const bool is_second = is_synchronous() && push.header.base == decided_;
  decision.reply.version = is_second ? Next(decided_) : decided_;
  ++outcomes_[PushOutcome::kDroppedLate];
  member.bases.erase(push.header.slot);
  member.RecordAnswer(push.header.sequence, push.checksum, decision.reply);
  Finish(push, decision.reply.version, decision);
  return decision;
}

void ShardCore::NoteBatch(const PushHeader& header) {
  if (header.count > 0) members_.At(header.identity.worker).newest_batch_end = header.batch + 1;
}

uint64_t ShardCore::NewestBatchEnd(WorkerId worker, Incarnation incarnation) const {
  const MemberRecord* member = members_.Find(worker, incarnation);
  return member != nullptr ? member->newest_batch_end : 0;
}

PushDecision ShardCore::JoinRound(const PushFacts& push) {
  const PushHeader& header = push.header;
  NoteBatch(header);
  const WorkerId worker = header.identity.worker;
  MemberRecord& member = members_.At(worker);
  PushDecision decision = {.took_effect = true};
  decision.reply.version = Next(decided_);
  decision.reply.staleness = StalenessOf(header);
  member.bases.erase(header.slot);
  if (header.count == 0) {
    round_.Excuse(worker);
  } else {
    decision.retained = PushId{next_push_++};
    round_.Add({.push = *decision.retained,
                .worker = worker,
                .base = header.base,
                .examples = header.examples,
                .scale = ScaleOf(header)});
    if (guard_.Scale(decision.reply.staleness) < 1.0) ++guard_counts_.scaled;
    lag_.RecordGradient(worker, decision.reply.staleness);
  }
  Advance(decision.effects);

  // In an exchange the push fixes the version answered: its own update's, or the current one if the
  // push was buffered; a synchronous round is waited for in any case, and one that the guard holds
  // back until it may close.
  const bool is_applied = decision.effects.update.has_value();
  const bool is_open_but_awaited = is_synchronous() || ParksUntilRoundCloses(worker, header.slot);
  const bool waits_for_round = is_applied || (is_open_but_awaited && header.pull);
  decision.reply.outcome = waits_for_round ? PushOutcome::kApplied : PushOutcome::kBuffered;
  ++outcomes_[decision.reply.outcome];
  member.RecordAnswer(header.sequence, push.checksum, decision.reply);
  if (waits_for_round || header.pull) {
    Finish(push, waits_for_round ? decision.reply.version : decided_, decision);
  }
  return decision;
}

void ShardCore::Finish(const PushFacts& push, Version answer_version, PushDecision& decision) {
  Wanted wanted = {.version = answer_version, .slot = push.header.slot};
  const WorkerId worker = push.header.identity.worker;
  // A repetition of an older push comes from the network alone: its sender has gone on, and will
  // not compute from what it is answered.
  const bool is_newest = Next(push.header.sequence) == members_.At(worker).expected();
  if (push.header.pull && (is_synchronous() || is_newest)) {
    wanted.trainer = worker;
    OweFrom(worker, answer_version);
  }
  decision.answer = ServeOrPark(wanted);
}

}  // namespace slipstream
