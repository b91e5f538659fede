// The part of ShardMachine that decides at the header of a push whether its payload is wanted, and
// forecasts the update that the push will cause.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/composite_push.h"
#include "server/core/shard_machine.h"

namespace slipstream {
namespace {

constexpr uint32_t kRetryAfterMs = 20;

std::string Number(uint64_t value) { return std::to_string(value); }

/// Returns the clock that the gradient `header` has to be beyond: that of the member's gradient
/// before it in this life, and that of the newest version, if the member published it.
WorkerClock ClockBefore(const PushHeader& header, const MemberRecord& member,
                        const std::optional<Stamp>& newest) {
  WorkerClock before{};
  // A life that begins keeps the clock of a gradient that may come anew, and then counts once.
  if (header.sequence > Sequence{1}) before = member.newest.clock;
  const bool is_publisher = header.kind == PushKind::kValues && newest.has_value() &&
                            newest->publisher == header.identity.incarnation;
  return is_publisher ? std::max(before, WorkerClock{newest->number}) : before;
}

}  // namespace

PushReply ShardMachine::Refusal(PushOutcome outcome, std::string message) const {
  PushReply reply;
  reply.outcome = outcome;
  reply.version = decided();
  Sign(reply);
  reply.message = std::move(message);
  const bool may_pass =
      outcome == PushOutcome::kRetryLater || outcome == PushOutcome::kUnknownMember;
  if (may_pass) reply.retry_after_ms = kRetryAfterMs;
  return reply;
}

std::optional<PushReply> ShardMachine::RefuseByHeader(const PushHeader& header) const {
  if (!has_plan() || !is_initialized()) {
    return Refusal(PushOutcome::kRetryLater, "the model has no initial weights yet");
  }
  if (header.identity.run != state_.run.plan->run) {
    return Refusal(PushOutcome::kWrongRun, "this is run " + Number(state_.run.plan->run) +
                                               ", the push is of " + Number(header.identity.run));
  }
  if (header.shard_map != state_.run.plan->shard_map) {
    return Refusal(PushOutcome::kWrongShardMap, "the push was cut by another shard map");
  }
  // A push that is part of the weights from which this life began gets its answer again.
  const bool is_known = FormerAnswer(header) != nullptr;
  if (!is_known) {
    if (auto refusal = RefuseByLife(header)) return refusal;
    if (auto refusal = RefuseBySequence(header)) return refusal;
  }
  const bool is_excuse = IsExcuse(header);
  if (header.count != state_.run.plan->count && !is_excuse) {
    return Refusal(PushOutcome::kShapeMismatch,
                   "this shard holds " + Number(state_.run.plan->count) + " values, the push has " +
                       Number(header.count));
  }
  if (header.kind != options_.pushes && !is_excuse) {
    return Refusal(PushOutcome::kShapeMismatch, std::string(Name(header.kind)) +
                                                    ", where each worker of the run pushes " +
                                                    std::string(Name(options_.pushes)));
  }
  if (header.examples == 0 && !is_excuse) {
    return Refusal(PushOutcome::kShapeMismatch, "a gradient of no examples");
  }
  const uint64_t most = ExamplesMax(header.batches, options_.quantum, options_.batch_size);
  if (header.examples > most) {
    return Refusal(
        PushOutcome::kTooManyExamples,
        Number(header.examples) + " examples, where the push can stand for " + Number(most));
  }
  if (header.slot >= options_.gradients_in_flight) {
    return Refusal(PushOutcome::kShapeMismatch,
                   "slot " + Number(header.slot) + ", where a worker has " +
                       Number(options_.gradients_in_flight) + " gradients under way at most");
  }
  if (header.base > decided() && !is_known) {
    return Refusal(PushOutcome::kFutureVersion, "base version " + Number(Value(header.base)) +
                                                    " is beyond version " +
                                                    Number(Value(decided())));
  }
  // Others wait for the clock, or readers know the version by it. A clock that stood still would
  // let its worker run ahead of all bounds, or name two versions by one stamp.
  const bool has_clock = traits_.keeps_pace || header.kind == PushKind::kValues;
  if (!has_clock || is_excuse || !IsNext(header)) return std::nullopt;
  const WorkerClock before =
      ClockBefore(header, members().At(header.identity.worker), RecordOf(decided()).stamp);
  if (header.clock > before) return std::nullopt;
  return Refusal(PushOutcome::kShapeMismatch,
                 "clock " + Number(Value(header.clock)) + ", where the worker's push before had " +
                     Number(Value(before)) + ": it goes up by one with each push");
}

std::optional<PushReply> ShardMachine::RefuseByLife(const PushHeader& header) const {
  if (header.life == life()) return std::nullopt;
  const bool has_ended = header.life < life();
  return Refusal(has_ended ? PushOutcome::kTooStale : PushOutcome::kFutureVersion,
                 "the base version is of life " + Number(Value(header.life)) +
                     " of this shard, which is in life " + Number(Value(life())));
}

const MemberRecord::Answer* ShardMachine::FormerAnswer(const PushHeader& header) const {
  if (header.life >= life()) return nullptr;
  const MemberRecord* member = members().Find(header.identity.worker, header.identity.incarnation);
  return member == nullptr ? nullptr : member->FindFormer(header.life, header.sequence);
}

bool ShardMachine::IsNext(const PushHeader& header) const {
  return header.life == life() &&
         header.sequence == members().At(header.identity.worker).expected();
}

bool ShardMachine::IsNewest(const PushHeader& header) const {
  const MemberRecord& member = members().At(header.identity.worker);
  if (header.life == life()) return Next(header.sequence) == member.expected();
  // It is one of an earlier life that was answered again.
  return member.expected() == Sequence{1} &&
         member.former.answers.back().sequence == header.sequence;
}

bool ShardMachine::IsExcuse(const PushHeader& header) const {
  return header.count == 0 && header.examples == 0 && takes_excuses_;
}

uint64_t ShardMachine::StalenessOf(const PushHeader& header) const {
  return Value(decided()) - Value(BaseOf(header));
}

double ShardMachine::ScaleOf(const PushHeader& header) const {
  const uint64_t staleness = StalenessOf(header);
  return compensation_->GradientFactor(staleness) * guard_.Scale(staleness);
}

std::optional<PushReply> ShardMachine::RefuseTooStale(const PushHeader& header) const {
  if (IsExcuse(header)) return std::nullopt;
  // A repeated push gets its first answer, whatever has happened since.
  if (!IsNext(header)) return std::nullopt;
  if (Admit(header).kind != Admission::Kind::kTooStale) return std::nullopt;
  const uint64_t staleness = StalenessOf(header);
  PushReply reply = Refusal(
      PushOutcome::kTooStale,
      IsBaseGone(header)
          ? "the weights of base version " + Number(Value(header.base)) +
                " are not kept any more, which staleness compensation needs"
          : "staleness " + Number(staleness) + " exceeds the bound " + Number(guard_.spec().bound));
  reply.staleness = staleness;
  return reply;
}

PushReply ShardMachine::Counted(PushReply refusal) {
  ++state_.tally.outcomes[refusal.outcome];
  // The guard rejected the push only if it is beyond the bound; else the weights of its base are
  // gone.
  const bool is_beyond = guard_.Judge(refusal.staleness) == StalenessGuard::Verdict::kRefuse;
  if (refusal.outcome == PushOutcome::kTooStale && is_beyond) ++state_.tally.guard_counts.rejected;
  return refusal;
}

std::optional<PushReply> ShardMachine::RefuseBySequence(const PushHeader& header) const {
  using Verdict = MemberTable::Verdict;
  const Identity& identity = header.identity;
  switch (members().Check(identity.worker, identity.incarnation, header.sequence)) {
    case Verdict::kFresh:
    case Verdict::kRepeated:
      return std::nullopt;
    case Verdict::kFenced:
      return Refusal(PushOutcome::kFenced, "incarnation " + Number(Value(identity.incarnation)) +
                                               " of worker " + Number(Value(identity.worker)) +
                                               " is not a member any more");
    case Verdict::kUnknownMember:
      return Refusal(PushOutcome::kRetryLater, "the view that has this member is on its way");
    case Verdict::kGap:
    case Verdict::kTooOld:
      break;
  }
  const Sequence expected = members().At(identity.worker).expected();
  PushReply reply = Refusal(PushOutcome::kOutOfSequence,
                            "sequence " + Number(Value(header.sequence)) + " where " +
                                Number(Value(expected)) + " is expected");
  reply.expected = expected;
  return reply;
}

bool ShardMachine::IsAwaited(WorkerId worker) const {
  return traits_.waits_for_members && std::ranges::count(Lacks().members, worker) > 0;
}

std::optional<PushReply> ShardMachine::RefuseForMemory(const PushHeader& header) const {
  // An excuse takes no memory, and the payloads that fill it may be waiting for the excuse.
  if (header.count == 0) return std::nullopt;
  bool is_awaited = false;
  ForEachPush(header, [&](const PushHeader& push) {
    is_awaited = is_awaited || IsAwaited(push.identity.worker);
  });
  // A composite that is stuck must not keep out the pushes of its workers, who have given it up.
  if (!IsComposite(header)) {
    const uint32_t arriving = members().At(header.identity.worker).pushes_arriving;
    if (arriving >= options_.gradients_in_flight + (is_awaited ? 1 : 0)) {
      return Refusal(PushOutcome::kRetryLater,
                     Number(arriving) + " pushes of this worker are on their way");
    }
  }
  const uint64_t bytes = header.count * sizeof(float);
  uint64_t bytes_max = bytes_queued_max();
  // Held payloads may belong to members that have left since.
  if (is_awaited) bytes_max += (view().members.size() + round().contributions()) * bytes;
  // An empty queue admits any push, or a shard larger than the bound would refuse for ever.
  if (bytes_queued() == 0 || bytes_queued() + bytes <= bytes_max) return std::nullopt;
  return Refusal(PushOutcome::kRetryLater, Number(bytes_queued()) + " bytes are queued");
}

PushAdmission ShardMachine::OnPushHeader(const PushHeader& header) {
  if (IsComposite(header)) return OnCompositeHeader(header);
  PushAdmission admission = {.is_of_member = IsOfMember(header)};
  std::optional<PushReply> refusal = RefuseByHeader(header);
  if (refusal.has_value() && IsMadeUp(header.identity)) {
    refusal = Refusal(PushOutcome::kUnknownMember, "the coordinator knows no incarnation " +
                                                       Number(Value(header.identity.incarnation)) +
                                                       " of worker " +
                                                       Number(Value(header.identity.worker)));
  }
  // A gradient only grows staler while its payload comes, so it can be refused now. Not so where
  // others wait for clocks: there the clock of the complete push counts.
  if (!refusal && !traits_.keeps_pace) refusal = RefuseTooStale(header);
  if (!refusal) refusal = RefuseForMemory(header);
  if (refusal) {
    admission.refusal = Counted(*std::move(refusal));
    return admission;
  }
  MemberRecord& member = state_.members.At(header.identity.worker);
  if (IsNext(header)) member.SettleBase(header.slot, header.base);
  NoteAdmitted(header, admission);
  if (!state_.intake.draft().has_value()) admission.draft = ForecastUpdate(header);
  if (admission.draft.has_value()) state_.intake.BeginDraft(admission.push, *admission.draft);
  return admission;
}

void ShardMachine::NoteAdmitted(const PushHeader& header, PushAdmission& admission) {
  admission.push = state_.intake.Admit(header.count * sizeof(float));
  if (header.count == 0 || IsComposite(header)) return;
  ++state_.members.At(header.identity.worker).pushes_arriving;
}

bool ShardMachine::IsMadeUp(const Identity& identity) {
  return has_plan() && identity.run == state_.run.plan->run &&
         members().CheckMember(identity.worker, identity.incarnation) ==
             MemberTable::Verdict::kUnknownMember &&
         state_.unknown_members.IsMadeUp(identity.incarnation);
}

bool ShardMachine::IsOfMember(const PushHeader& header) const {
  const Identity& identity = header.identity;
  const bool is_of_run = has_plan() && identity.run == state_.run.plan->run;
  return is_of_run && header.slot < options_.gradients_in_flight &&
         members().CheckMember(identity.worker, identity.incarnation) ==
             MemberTable::Verdict::kFresh;
}

void ShardMachine::OnPushAbandoned(PushId push, const PushHeader& header) {
  NoteArrival(header);
  OnDraftEnded(push);
  ReleaseBytes(header.count * sizeof(float));
}

void ShardMachine::OnDraftEnded(PushId push) { state_.intake.EndDraftOf(push); }

void ShardMachine::NoteArrival(const PushHeader& header) {
  const Identity& identity = header.identity;
  if (header.count == 0 || IsComposite(header)) return;
  // The pushes of a worker that has left meanwhile are not counted.
  if (members().Find(identity.worker, identity.incarnation) == nullptr) return;
  uint32_t& arriving = state_.members.At(identity.worker).pushes_arriving;
  if (arriving > 0) --arriving;
}

std::optional<Forecast> ShardMachine::ForecastUpdate(const PushHeader& header) const {
  const WorkerId worker = header.identity.worker;
  const MemberRecord* member = members().Find(worker, header.identity.incarnation);
  const bool is_next = header.count > 0 && member != nullptr && IsNext(header);
  const bool is_base_published = is_initialized() && published() == decided();
  // Each of these makes an update unforeseeable: the mean over updates is known only when this one
  // is counted, norms over tensors only when the gradient is complete, what a guard that blocks
  // waits for changes with every pull, and gradients compensated by base weights are folded before
  // the update. Gradients that are added in place make no version that could be thrown away.
  const bool is_foreseeable = !scaling_.scales_rounds && !rule_.measures_tensors &&
                              !traits_.in_place && !tracks_bases() && !uses_base_weights();
  if (!is_next || !is_base_published || !is_foreseeable || WorkIsDone()) return std::nullopt;
  if (round().contributions() > 0 || Admit(header).kind != Admission::Kind::kJoin) {
    return std::nullopt;
  }
  // Ask the policy as if the push were complete.
  Members facts = MembersNow();
  const auto member_facts = std::ranges::find(facts, worker, &MemberFacts::worker);
  if (member_facts != facts.end()) member_facts->heard = true;
  ShardFacts shard = FactsWith(facts);
  shard.contributions = 1;
  if (!policy_->Lacks(shard).none()) return std::nullopt;
  return Forecast{.from = decided(),
                  .weight = static_cast<float>(ScaleOf(header)),
                  .learning_rate = static_cast<float>(current_learning_rate())};
}

std::optional<PushReply> ShardMachine::RefuseByPayload(const PushFacts& facts) const {
  if (facts.values_received != facts.header.count) {
    return Refusal(PushOutcome::kLengthMismatch, Number(facts.values_received) + " of " +
                                                     Number(facts.header.count) + " values came");
  }
  if (!facts.is_finite) {
    return Refusal(PushOutcome::kNonfinite,
                   std::string(Name(facts.header.kind)) +
                       " with a NaN, an infinity or a magnitude of 2^50 or more");
  }
  return std::nullopt;
}

}  // namespace slipstream
