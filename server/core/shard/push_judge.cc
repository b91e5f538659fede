#include "server/core/shard/push_judge.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/protocol/composite_push.h"

namespace slipstream {
namespace {

constexpr uint32_t kRetryAfterMs = 20;

std::string Number(uint64_t value) { return std::to_string(value); }

/// Returns the clock that the gradient `header` has to be beyond: that of the member's gradient
/// before it in this generation, and that of the newest version, if the member published it.
WorkerClock ClockBefore(const PushHeader& header, const MemberRecord& member,
                        const std::optional<Stamp>& newest) {
  WorkerClock before{};
  // A generation that begins keeps the clock of a gradient that may come anew, and then counts
  // once.
  if (header.sequence > Sequence{1}) before = member.newest.clock;
  const bool is_publisher = header.kind == PushKind::kValues && newest.has_value() &&
                            newest->publisher == header.identity.incarnation;
  return is_publisher ? std::max(before, WorkerClock{newest->number}) : before;
}

}  // namespace

PushReply PushJudge::Refusal(PushOutcome outcome, std::string message) const {
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

void PushJudge::Sign(PushReply& reply) const {
  reply.generation = generation();
  reply.durability = rules_.options().keeps_log ? Durability::kSynced
                     : rules_.options().saves   ? Durability::kCheckpoint
                                                : Durability::kMemory;
}

std::optional<PushReply> PushJudge::RefuseByHeader(const PushHeader& header) const {
  const std::optional<ShardPlan>& plan = state_.run.plan;
  const ShardMachineOptions& options = rules_.options();
  if (!plan.has_value() || !state_.initial_weights.is_initialized()) {
    return Refusal(PushOutcome::kRetryLater, "the model has no initial weights yet");
  }
  if (header.identity.run != plan->run) {
    return Refusal(PushOutcome::kWrongRun, "this is run " + Number(plan->run) +
                                               ", the push is of " + Number(header.identity.run));
  }
  if (header.shard_map != plan->shard_map) {
    return Refusal(PushOutcome::kWrongShardMap, "the push was cut by another shard map");
  }
  // A push that is part of the weights from which this generation began gets its answer again.
  const bool is_known = FormerAnswer(header) != nullptr;
  if (!is_known) {
    if (auto refusal = RefuseByGeneration(header)) return refusal;
    if (auto refusal = RefuseBySequence(header)) return refusal;
  }
  const bool is_excuse = IsExcuse(header);
  if (header.count != plan->count && !is_excuse) {
    return Refusal(PushOutcome::kShapeMismatch, "this shard holds " + Number(plan->count) +
                                                    " values, the push has " +
                                                    Number(header.count));
  }
  if (header.kind != options.pushes && !is_excuse) {
    return Refusal(PushOutcome::kShapeMismatch, std::string(Name(header.kind)) +
                                                    ", where each worker of the run pushes " +
                                                    std::string(Name(options.pushes)));
  }
  if (header.examples == 0 && !is_excuse) {
    return Refusal(PushOutcome::kShapeMismatch, "a gradient of no examples");
  }
  const uint64_t most = ExamplesMax(header.batches, options.quantum, options.batch_size);
  if (header.examples > most) {
    return Refusal(
        PushOutcome::kTooManyExamples,
        Number(header.examples) + " examples, where the push can stand for " + Number(most));
  }
  if (header.slot >= options.gradients_in_flight) {
    return Refusal(PushOutcome::kShapeMismatch,
                   "slot " + Number(header.slot) + ", where a worker has " +
                       Number(options.gradients_in_flight) + " gradients under way at most");
  }
  if (header.base > decided() && !is_known) {
    return Refusal(PushOutcome::kFutureVersion, "base version " + Number(Value(header.base)) +
                                                    " is beyond version " +
                                                    Number(Value(decided())));
  }
  // Others wait for the clock, or readers know the version by it. A clock that stood still would
  // let its worker run ahead of all bounds, or name two versions by one stamp.
  const bool has_clock = rules_.traits().keeps_pace || header.kind == PushKind::kValues;
  if (!has_clock || is_excuse || !IsNext(header)) return std::nullopt;
  const WorkerClock before = ClockBefore(header, state_.members.At(header.identity.worker),
                                         state_.versions.RecordOf(decided()).stamp);
  if (header.clock > before) return std::nullopt;
  return Refusal(PushOutcome::kShapeMismatch,
                 "clock " + Number(Value(header.clock)) + ", where the worker's push before had " +
                     Number(Value(before)) + ": it goes up by one with each push");
}

std::optional<PushReply> PushJudge::RefuseByGeneration(const PushHeader& header) const {
  if (header.generation == generation()) return std::nullopt;
  const bool has_ended = header.generation < generation();
  return Refusal(has_ended ? PushOutcome::kTooStale : PushOutcome::kFutureVersion,
                 "the base version is of generation " + Number(Value(header.generation)) +
                     " of this shard, which is in generation " + Number(Value(generation())));
}

std::optional<PushReply> PushJudge::RefuseBySequence(const PushHeader& header) const {
  using Verdict = MemberTable::Verdict;
  const Identity& identity = header.identity;
  switch (state_.members.Check(identity.worker, identity.incarnation, header.sequence)) {
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
  const Sequence expected = state_.members.At(identity.worker).expected();
  PushReply reply = Refusal(PushOutcome::kOutOfSequence,
                            "sequence " + Number(Value(header.sequence)) + " where " +
                                Number(Value(expected)) + " is expected");
  reply.expected = expected;
  return reply;
}

std::optional<PushReply> PushJudge::RefuseByPayload(const PushFacts& facts) const {
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

std::optional<PushReply> PushJudge::RefuseTooStale(const PushHeader& header) const {
  if (IsExcuse(header)) return std::nullopt;
  // A repeated push gets its first answer, whatever has happened since.
  if (!IsNext(header)) return std::nullopt;
  if (Admit(header).kind != Admission::Kind::kTooStale) return std::nullopt;
  const uint64_t staleness = StalenessOf(header);
  PushReply reply =
      Refusal(PushOutcome::kTooStale,
              IsBaseGone(header) ? "the weights of base version " + Number(Value(header.base)) +
                                       " are not kept any more, which staleness compensation needs"
                                 : "staleness " + Number(staleness) + " exceeds the bound " +
                                       Number(rules_.guard().spec().bound));
  reply.staleness = staleness;
  return reply;
}

std::optional<PushReply> PushJudge::RefuseForMemory(const PushHeader& header) const {
  // An excuse takes no memory, and the payloads that fill it may be waiting for the excuse.
  if (header.count == 0) return std::nullopt;
  bool is_awaited = false;
  ForEachPush(header, [&](const PushHeader& push) {
    is_awaited = is_awaited || IsAwaited(push.identity.worker);
  });
  // A composite that is stuck must not keep out the pushes of its workers, who have given it up.
  if (!IsComposite(header)) {
    const uint32_t arriving = state_.members.At(header.identity.worker).pushes_arriving;
    if (arriving >= rules_.options().gradients_in_flight + (is_awaited ? 1 : 0)) {
      return Refusal(PushOutcome::kRetryLater,
                     Number(arriving) + " pushes of this worker are on their way");
    }
  }
  const uint64_t bytes = header.count * sizeof(float);
  uint64_t bytes_max = bytes_queued_max();
  // Held payloads may belong to members that have left since.
  const size_t members = state_.members.view().members.size();
  if (is_awaited) bytes_max += (members + state_.open.round.contributions()) * bytes;
  // An empty queue admits any push, or a shard larger than the bound would refuse for ever.
  const uint64_t queued = state_.intake.bytes_queued();
  if (queued == 0 || queued + bytes <= bytes_max) return std::nullopt;
  return Refusal(PushOutcome::kRetryLater, Number(queued) + " bytes are queued");
}

bool PushJudge::IsAwaited(WorkerId worker) const {
  return rules_.traits().waits_for_members && ask_.IsAwaited(worker);
}

const MemberRecord::Answer* PushJudge::FormerAnswer(const PushHeader& header) const {
  if (header.generation >= generation()) return nullptr;
  const MemberRecord* member =
      state_.members.Find(header.identity.worker, header.identity.incarnation);
  return member == nullptr ? nullptr : member->FindFormer(header.generation, header.sequence);
}

bool PushJudge::IsNext(const PushHeader& header) const {
  return header.generation == generation() &&
         header.sequence == state_.members.At(header.identity.worker).expected();
}

bool PushJudge::IsNewest(const PushHeader& header) const {
  const MemberRecord& member = state_.members.At(header.identity.worker);
  if (header.generation == generation()) return Next(header.sequence) == member.expected();
  // It is one of an earlier generation that was answered again.
  return member.expected() == Sequence{1} &&
         member.former.answers.back().sequence == header.sequence;
}

bool PushJudge::IsExcuse(const PushHeader& header) const {
  return header.count == 0 && header.examples == 0 && rules_.takes_excuses();
}

bool PushJudge::IsOfMember(const PushHeader& header) const {
  const Identity& identity = header.identity;
  const bool is_of_run = state_.run.plan.has_value() && identity.run == state_.run.plan->run;
  return is_of_run && header.slot < rules_.options().gradients_in_flight &&
         state_.members.CheckMember(identity.worker, identity.incarnation) ==
             MemberTable::Verdict::kFresh;
}

uint64_t PushJudge::StalenessOf(const PushHeader& header) const {
  return Value(decided()) - Value(BaseOf(header));
}

double PushJudge::ScaleOf(const PushHeader& header) const {
  const uint64_t staleness = StalenessOf(header);
  return rules_.compensation().GradientFactor(staleness) * rules_.guard().Scale(staleness);
}

Admission PushJudge::Admit(const PushHeader& header) const {
  if (IsOfEarlierStage(header)) {
    if (StaysTooStale(header)) return {Admission::Kind::kTooStale, ""};
    return {Admission::Kind::kLate, "its policy's epochs ended without it"};
  }
  const WorkerId worker = header.identity.worker;
  const MemberFacts member = ask_.FactsOf(worker);
  Admission admission =
      rules_.policy().Admit(ask_.Facts(), {.member = member, .base = BaseOf(header)});
  if (admission.kind == Admission::Kind::kJoin && IsBaseGone(header)) {
    admission.kind = Admission::Kind::kTooStale;
  }
  return admission;
}

bool PushJudge::StaysTooStale(const PushHeader& header) const {
  // Its worker has gone on with the same sequence, which the repetition must not use up.
  if (IsExcuse(header) || (rules_.works_in_rounds() && !IsOfEarlierStage(header))) return false;
  const bool is_beyond =
      rules_.guard().Judge(StalenessOf(header)) == StalenessGuard::Verdict::kRefuse;
  return is_beyond || IsBaseGone(header);
}

bool PushJudge::IsBaseGone(const PushHeader& header) const {
  if (!rules_.uses_base_weights() || header.count == 0 || header.base == decided()) return false;
  return !state_.members.At(header.identity.worker).WasGiven(header.slot, header.base);
}

std::optional<Forecast> PushJudge::ForecastUpdate(const PushHeader& header) const {
  const WorkerId worker = header.identity.worker;
  const MemberRecord* member = state_.members.Find(worker, header.identity.incarnation);
  const bool is_next = header.count > 0 && member != nullptr && IsNext(header);
  const bool is_base_published =
      state_.initial_weights.is_initialized() && state_.versions.published() == decided();
  // Each of these makes an update unforeseeable: the mean over updates is known only when this one
  // is counted, norms over tensors only when the gradient is complete, what a guard that blocks
  // waits for changes with every pull, and gradients compensated by base weights are folded before
  // the update. Gradients that are added in place make no version that could be thrown away.
  const bool is_foreseeable = !rules_.scaling().scales_rounds && !rules_.rule().measures_tensors &&
                              !rules_.traits().adds_in_place() && !rules_.tracks_bases() &&
                              !rules_.uses_base_weights();
  if (!is_next || !is_base_published || !is_foreseeable || ask_.WorkIsDone()) return std::nullopt;
  if (state_.open.round.contributions() > 0 || Admit(header).kind != Admission::Kind::kJoin) {
    return std::nullopt;
  }
  // Ask the policy as if the push were complete.
  ShardFacts shard = ask_.Facts();
  const std::optional<AwaitedMembers>& awaited = state_.open.awaited;
  if (awaited.has_value() && awaited->all().contains(worker)) --shard.awaited;
  shard.contributions = 1;
  if (!rules_.policy().Lacks(shard).none()) return std::nullopt;
  return Forecast{
      .from = decided(),
      .weight = static_cast<float>(ScaleOf(header)),
      .learning_rate = static_cast<float>(rules_.RateAt(state_.versions.newest().examples))};
}

uint64_t PushJudge::bytes_queued_max() const {
  if (rules_.options().push_bytes_max > 0) return rules_.options().push_bytes_max;
  const uint64_t pushes = std::max<uint64_t>(1, state_.members.view().members.size()) *
                          rules_.options().gradients_in_flight;
  return state_.run.plan.has_value() ? pushes * state_.run.plan->count * sizeof(float) : 0;
}

}  // namespace slipstream
