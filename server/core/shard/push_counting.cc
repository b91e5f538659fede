#include "server/core/shard/push_counting.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/protocol/composite_push.h"
#include "server/core/shard/composite_judge.h"

namespace slipstream {

PushCounting::Decision PushCounting::Decide(const PushFacts& facts, ShardOutput& output) {
  const PushHeader& header = facts.header;
  if (IsComposite(header)) return DecideComposite(facts, output);
  // Check again: the view or the sequence may have moved on while the payload came.
  std::optional<PushReply> refusal = judge_.RefuseByHeader(header);
  if (!refusal) refusal = judge_.RefuseByPayload(facts);
  if (refusal) return Refused(*std::move(refusal));
  if (!judge_.IsNext(header)) {
    const MemberRecord::Answer* first = judge_.FormerAnswer(header);
    if (first == nullptr) {
      first = state_.members.At(header.identity.worker).FindAnswer(header.sequence);
    }
    PS_CHECK(first != nullptr);  // RefuseByHeader made sure.
    if (first->checksum == facts.checksum) return AnswerAgain(facts, first->reply);
    return Refused(judge_.Refusal(
        PushOutcome::kSequenceReused,
        "sequence " + std::to_string(Value(header.sequence)) + " was used for another payload"));
  }
  if (judge_.ask().WorkIsDone() && !judge_.StaysTooStale(header)) {
    return DropLate(facts, "the run's work is done");
  }
  // An excuse brings no gradient. A round that wants one message of each member takes it; elsewhere
  // it only gives up the weights that were pulled.
  if (judge_.IsExcuse(header) && !rules_.traits().one_per_member) return GiveUpPull(facts, output);
  const Admission admission = judge_.Admit(header);
  switch (admission.kind) {
    case Admission::Kind::kJoin:
      break;
    case Admission::Kind::kLate:
      return DropLate(facts, std::string(admission.why));
    case Admission::Kind::kDrop:
      ++state_.tally.guard_counts.dropped;
      return DropLate(
          facts, "its staleness exceeds the bound " + std::to_string(rules_.guard().spec().bound));
    case Admission::Kind::kTooStale:
      // The push may be complete on other shards, where its worker then waits for others, and these
      // would wait here for its clock: so the clock counts. If the worker rests, it says so again.
      if (!judge_.IsOfEarlierStage(header)) {
        progress_.EnterPace(header.identity.worker, header.clock);
      }
      return Refused(*judge_.RefuseTooStale(header));
  }
  return JoinRound(facts, output);
}

PushCounting::Decision PushCounting::DecideComposite(const PushFacts& facts, ShardOutput& output) {
  // Check again: a part may have come another way while the payload came.
  const CompositeJudge judge(rules_, state_);
  if (auto refusal = judge.Refuse(facts.header)) return Refused(*std::move(refusal));
  // The aggregator has not heard the answer, as the connection broke or the shard's process ended.
  if (const PushReply* const first = judge.FirstAnswerTo(facts.header))
    return AnswerAgain(facts, *first);
  // One of the parts made it so. Its worker will be told when it sends the part by itself.
  if (auto refusal = judge_.RefuseByPayload(facts)) {
    return Refused(judge_.Refusal(PushOutcome::kNotCombined, refusal->message));
  }
  return JoinRound(facts, output);
}

PushCounting::Decision PushCounting::Refused(PushReply refusal) {
  state_.tally.CountRefusal(refusal, rules_.guard());
  return {.reply = std::move(refusal), .took_effect = false};
}

PushCounting::Decision PushCounting::GiveUpPull(const PushFacts& facts, ShardOutput& output) {
  const PushHeader& header = facts.header;
  NotePace(header);
  Decision decision;
  decision.reply.outcome = PushOutcome::kBuffered;
  decision.reply.version = state_.versions.decided();
  MemberRecord& member = state_.members.At(header.identity.worker);
  state_.members.EndBase(header.identity.worker, header.slot);
  progress_.Advance(output);
  ++state_.tally.outcomes[decision.reply.outcome];
  member.RecordAnswer(header.sequence, facts.checksum, decision.reply);
  if (header.pull) decision.answer_version = state_.versions.decided();
  return decision;
}

PushCounting::Decision PushCounting::AnswerAgain(const PushFacts& facts, const PushReply& first) {
  ForEachPush(facts.header,
              [this](const PushHeader&) { ++state_.tally.outcomes[PushOutcome::kDuplicate]; });
  Decision decision = {.reply = first, .took_effect = false};
  decision.reply.outcome = PushOutcome::kDuplicate;
  decision.reply.first_outcome = first.outcome;
  // The version that the first answer waited for may not be published yet. A round that is held
  // back will still make the version that was promised.
  const bool is_applied = first.outcome == PushOutcome::kApplied;
  if (is_applied) {
    decision.answer_version = std::max(first.version, state_.versions.decided());
  } else {
    decision.answer_version = AnswerVersionOfAll(facts.header);
  }
  return decision;
}

PushCounting::Decision PushCounting::DropLate(const PushFacts& facts, std::string message) {
  MemberRecord& member = state_.members.At(facts.header.identity.worker);
  NotePace(facts.header);
  NoteBatch(facts.header);
  Decision decision;
  decision.reply.outcome = PushOutcome::kDroppedLate;
  decision.reply.staleness = judge_.StalenessOf(facts.header);
  decision.reply.message = std::move(message);
  decision.reply.version = AnswerVersion(facts.header);
  ++state_.tally.outcomes[PushOutcome::kDroppedLate];
  state_.members.EndBase(facts.header.identity.worker, facts.header.slot);
  member.RecordAnswer(facts.header.sequence, facts.checksum, decision.reply);
  decision.answer_version = decision.reply.version;
  return decision;
}

void PushCounting::NotePace(const PushHeader& header) {
  const WorkerId worker = header.identity.worker;
  // A push that says only that no gradient will come does not show that the worker has work.
  const bool has_work = header.count > 0 || header.pull;
  if (header.rests) {
    state_.members.Rest(worker);
    progress_.OnPaceChanged();
  } else if (has_work || state_.members.At(worker).is_in_pace) {
    progress_.EnterPace(worker, header.clock);
  }
}

void PushCounting::NoteBatch(const PushHeader& header) {
  if (header.count == 0) return;
  state_.members.At(header.identity.worker).newest = {EndOf(header.batches), header.clock};
}

PushCounting::Decision PushCounting::JoinRound(const PushFacts& facts, ShardOutput& output) {
  const PushHeader& header = facts.header;
  Decision decision;
  decision.reply.version = Next(state_.versions.decided());
  decision.reply.staleness = judge_.StalenessOf(header);
  ForEachPush(header, [this](const PushHeader& push) {
    NotePace(push);
    NoteBatch(push);
    state_.members.EndBase(push.identity.worker, push.slot);
  });
  if (header.count == 0) {
    state_.open.Excuse(header.identity.worker, header.leaves_out);
  } else {
    output.keeps_payload = true;
    // A draft made of another push alone is no longer valid.
    state_.intake.EndDraftBeside(facts.push);
    Contribute(facts);
  }
  progress_.Advance(output);

  // In an exchange the push fixes the version of the answer: that of its own update, or the one
  // that its worker has to wait for. If this is the next version, it will contain the round.
  if (output.update.has_value()) {
    decision.answer_version = output.update->to;
  } else {
    decision.answer_version = AnswerVersionOfAll(header);
  }
  const bool is_applied = decision.answer_version == decision.reply.version;
  decision.reply.outcome = is_applied ? PushOutcome::kApplied : PushOutcome::kBuffered;
  size_t part = 0;
  ForEachPush(header, [&](const PushHeader& push) {
    MemberRecord& member = state_.members.At(push.identity.worker);
    ++state_.tally.outcomes[decision.reply.outcome];
    if (!IsComposite(header)) {
      return member.RecordAnswer(push.sequence, facts.checksum, decision.reply);
    }
    const PushPart& own = header.parts[part++];
    member.RecordAnswer(push.sequence, own.checksum, ReplyTo(decision.reply, own));
  });
  return decision;
}

void PushCounting::Contribute(const PushFacts& facts) {
  const PushHeader& header = facts.header;
  Round::Contribution contribution = {.push = facts.push,
                                      .worker = header.identity.worker,
                                      .base = judge_.BaseOf(header),
                                      .examples = header.examples,
                                      .scale = judge_.ScaleOf(header),
                                      .clip = header.trailer.clip,
                                      .absent = header.trailer.absent,
                                      .stamp = StampOf(header),
                                      .label = header.kind == PushKind::kValues ? header.label : 0};
  uint64_t staleness_sum = 0;
  ForEachPush(header, [&](const PushHeader& push) {
    const uint64_t staleness = judge_.StalenessOf(push);
    staleness_sum += staleness;
    if (rules_.guard().Scale(staleness) < 1.0) ++state_.tally.guard_counts.scaled;
    state_.tally.lag.RecordGradient(push.identity.worker, staleness);
  });
  if (IsComposite(header)) {
    contribution.worker = header.parts.front().worker;
    contribution.base = header.parts.front().base;
    for (const PushPart& part : std::span(header.parts).subspan(1)) {
      contribution.others.push_back({part.worker, part.base});
    }
    state_.tally.lag.RecordComposite(contribution.parts(),
                                     static_cast<double>(staleness_sum) / contribution.parts());
  }
  state_.open.Add(contribution);
}

std::optional<Stamp> PushCounting::StampOf(const PushHeader& header) {
  if (header.kind != PushKind::kValues) return std::nullopt;
  return Stamp{.publisher = header.identity.incarnation, .number = Value(header.clock)};
}

Version PushCounting::AnswerVersion(const PushHeader& header) const {
  const WorkerId worker = header.identity.worker;
  return std::max(state_.versions.decided(),
                  judge_.ask().WaitsFor(worker, header.slot, /*after_push=*/true).version);
}

std::optional<Version> PushCounting::AnswerVersionOfAll(const PushHeader& header) const {
  std::optional<Version> version;
  // A worker that need not wait is not kept waiting by another: the round may wait for its next
  // push.
  ForEachPush(header, [&](const PushHeader& push) {
    if (!push.pull) return;
    const Version own = AnswerVersion(push);
    version = std::min(version.value_or(own), own);
  });
  return version;
}

PendingCall PushCounting::CallOf(CallId call, const PushHeader& header, const Decision& decision) {
  PendingCall pending = {.call = call,
                         .condition = {.version = *decision.answer_version},
                         .push = decision.reply,
                         .wants_weights = header.pull,
                         .parts = static_cast<uint32_t>(header.parts.size())};
  if (header.holds_base && header.generation == state_.versions.generation())
    pending.held = header.base;
  uint32_t part = 0;
  ForEachPush(header, [&](const PushHeader& push) { ExpectMore(push, part++, pending); });
  return pending;
}

void PushCounting::ExpectMore(const PushHeader& push, uint32_t part, PendingCall& call) {
  const auto [_, worker, incarnation] = push.identity;
  // A repetition of an older push was delayed by the network: its sender has gone on, and will not
  // compute from the answer.
  if (!judge_.IsNewest(push)) return;
  call.goes_on = call.goes_on || push.pull || push.count > 0;
  if (!push.pull) return;
  call.trainers.push_back({worker, incarnation, push.slot, part});
  progress_.OweFrom(worker, call.condition.version);
  if (!rules_.traits().keeps_pace) return;
  call.condition.slowest =
      std::max(call.condition.slowest,
               judge_.ask().WaitsFor(worker, push.slot, /*after_push=*/true).slowest);
}

}  // namespace slipstream
