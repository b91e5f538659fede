// The part of ShardCore that decides at the header of a push: is its payload wanted, and what will
// it probably cause.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/policy/staleness_scaling.h"
#include "server/core/shard_core.h"

namespace slipstream {
namespace {

constexpr uint32_t kRetryAfterMs = 20;

std::string Number(uint64_t value) { return std::to_string(value); }

}  // namespace

PushReply ShardCore::Refusal(PushOutcome outcome, std::string message) const {
  PushReply reply;
  reply.outcome = outcome;
  reply.version = decided_;
  reply.message = std::move(message);
  if (outcome == PushOutcome::kRetryLater) reply.retry_after_ms = kRetryAfterMs;
  return reply;
}

std::optional<PushReply> ShardCore::RefuseByHeader(const PushHeader& header) const {
  if (!plan_.has_value() || !is_initialized_) {
    return Refusal(PushOutcome::kRetryLater, "the model has no initial weights yet");
  }
  if (header.identity.run != plan_->run) {
    return Refusal(PushOutcome::kWrongRun, "this is run " + Number(plan_->run) +
                                               ", the push is of " + Number(header.identity.run));
  }
  if (header.shard_map != plan_->shard_map) {
    return Refusal(PushOutcome::kWrongShardMap, "the push was cut by another shard map");
  }
  if (auto refusal = RefuseBySequence(header)) return refusal;
  const bool is_excuse = IsExcuse(header);
  if (header.count != plan_->count && !is_excuse) {
    return Refusal(PushOutcome::kShapeMismatch, "this shard holds " + Number(plan_->count) +
                                                    " values, the push has " +
                                                    Number(header.count));
  }
  if (header.examples == 0 && !is_excuse) {
    return Refusal(PushOutcome::kShapeMismatch, "a gradient of no examples");
  }
  if (header.slot >= options_.gradients_in_flight) {
    return Refusal(PushOutcome::kShapeMismatch,
                   "slot " + Number(header.slot) + ", where a worker has " +
                       Number(options_.gradients_in_flight) + " gradients under way at most");
  }
  if (header.base > decided_) {
    return Refusal(PushOutcome::kFutureVersion, "base version " + Number(Value(header.base)) +
                                                    " is beyond version " +
                                                    Number(Value(decided_)));
  }
  return std::nullopt;
}

bool ShardCore::IsExcuse(const PushHeader& header) const {
  return header.count == 0 && header.examples == 0 && (is_synchronous() || guard_.blocks());
}

uint64_t ShardCore::StalenessOf(const PushHeader& header) const {
  return Value(decided_) - Value(header.base);
}

double ShardCore::ScaleOf(const PushHeader& header) const {
  const uint64_t staleness = StalenessOf(header);
  return GradientScale(options_.staleness_scaling, staleness) * guard_.Scale(staleness);
}

std::optional<PushReply> ShardCore::RefuseByGuard(const PushHeader& header) const {
  const uint64_t staleness = StalenessOf(header);
  // What a synchronous round takes is never stale, and what it does not take has come late.
  if (is_synchronous() || IsExcuse(header)) return std::nullopt;
  // A repetition gets its answer, whatever happened since.
  if (header.sequence != members_.At(header.identity.worker).expected()) return std::nullopt;
  if (guard_.Judge(staleness) != StalenessGuard::Verdict::kRefuse) return std::nullopt;
  PushReply reply =
      Refusal(PushOutcome::kTooStale, "staleness " + Number(staleness) + " exceeds the bound " +
                                          Number(guard_.spec().bound));
  reply.staleness = staleness;
  return reply;
}

PushReply ShardCore::Counted(PushReply refusal) {
  ++outcomes_[refusal.outcome];
  if (refusal.outcome == PushOutcome::kTooStale) ++guard_counts_.rejected;
  return refusal;
}

std::optional<PushReply> ShardCore::RefuseBySequence(const PushHeader& header) const {
  using Verdict = MemberTable::Verdict;
  const Identity& identity = header.identity;
  switch (members_.Check(identity.worker, identity.incarnation, header.sequence)) {
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
  const Sequence expected = members_.At(identity.worker).expected();
  PushReply reply = Refusal(PushOutcome::kOutOfSequence,
                            "sequence " + Number(Value(header.sequence)) + " where " +
                                Number(Value(expected)) + " is expected");
  reply.expected = expected;
  return reply;
}

bool ShardCore::IsAwaited(WorkerId worker) const {
  if (is_synchronous()) return !round_.HasHeardFrom(worker);
  const std::vector<WorkerId> awaited = HeldBackBy();
  return std::ranges::find(awaited, worker) != awaited.end();
}

std::optional<PushReply> ShardCore::RefuseForRoom(const PushHeader& header) const {
  // An excuse takes no room, and what fills it may wait for that excuse.
  if (header.count == 0) return std::nullopt;
  const WorkerId worker = header.identity.worker;
  const bool is_awaited = IsAwaited(worker);
  const uint32_t arriving = members_.At(worker).pushes_arriving;
  if (arriving >= options_.gradients_in_flight + (is_awaited ? 1 : 0)) {
    return Refusal(PushOutcome::kRetryLater,
                   Number(arriving) + " pushes of this worker are on their way");
  }
  const uint64_t bytes = header.count * sizeof(float);
  uint64_t bytes_max = bytes_queued_max();
  // What is held may be of members that have left since.
  if (is_awaited) bytes_max += (view().members.size() + round_.contributions()) * bytes;
  // One push is always let in, or a shard larger than the bound would refuse for ever.
  if (bytes_queued_ == 0 || bytes_queued_ + bytes <= bytes_max) return std::nullopt;
  return Refusal(PushOutcome::kRetryLater, Number(bytes_queued_) + " bytes are queued");
}

std::optional<PushReply> ShardCore::OnPushHeader(const PushHeader& header) {
  std::optional<PushReply> refusal = RefuseByHeader(header);
  // It can only grow older while the payload comes.
  if (!refusal) refusal = RefuseByGuard(header);
  if (!refusal) refusal = RefuseForRoom(header);
  if (refusal) return Counted(*std::move(refusal));
  bytes_queued_ += header.count * sizeof(float);
  if (header.count > 0) ++members_.At(header.identity.worker).pushes_arriving;
  return std::nullopt;
}

bool ShardCore::IsOfMember(const PushHeader& header) const {
  const Identity& identity = header.identity;
  const bool is_of_run = plan_.has_value() && identity.run == plan_->run;
  return is_of_run && header.slot < options_.gradients_in_flight &&
         members_.CheckMember(identity.worker, identity.incarnation) ==
             MemberTable::Verdict::kFresh;
}

void ShardCore::OnPushAbandoned(const PushHeader& header) {
  NoteArrival(header);
  ReleaseBytes(header.count * sizeof(float));
}

void ShardCore::NoteArrival(const PushHeader& header) {
  const Identity& identity = header.identity;
  // Nobody counts the pushes of a worker who has left since.
  if (header.count == 0 || members_.Find(identity.worker, identity.incarnation) == nullptr) return;
  uint32_t& arriving = members_.At(identity.worker).pushes_arriving;
  if (arriving > 0) --arriving;
}

std::optional<Forecast> ShardCore::ForecastUpdate(const PushHeader& header) const {
  const WorkerId worker = header.identity.worker;
  const MemberRecord* member = members_.Find(worker, header.identity.incarnation);
  const bool is_next =
      header.count > 0 && member != nullptr && header.sequence == member->expected();
  const bool is_base_published = is_initialized_ && published_ == decided_;
  // The mean over updates is known only when this one is counted, and what a guard that blocks
  // waits for when it is decided.
  const bool is_foreseeable =
      options_.staleness_scaling != OptimizerSpec::StalenessScaling::kMean && !guard_.blocks();
  if (!is_next || !is_base_published || !is_foreseeable || WorkIsDone()) return std::nullopt;
  if (round_.contributions() > 0 || round_.HasHeardFrom(worker)) return std::nullopt;
  const bool is_late = is_synchronous() && header.base != decided_;
  if (is_late || guard_.Judge(StalenessOf(header)) == StalenessGuard::Verdict::kDrop) {
    return std::nullopt;
  }
  const std::vector<WorkerId> awaited = Awaited();
  RoundPolicy::RoundFacts facts = RoundFacts(awaited.size());
  facts.contributions = 1;
  facts.awaited -= static_cast<uint32_t>(std::ranges::count(awaited, worker));
  if (!policy_.Closes(facts)) return std::nullopt;
  return Forecast{.from = decided_,
                  .weight = static_cast<float>(ScaleOf(header)),
                  .learning_rate = static_cast<float>(current_learning_rate())};
}

std::optional<PushReply> ShardCore::RefuseByPayload(const PushFacts& push) const {
  if (push.values_received != push.header.count) {
    return Refusal(PushOutcome::kLengthMismatch, Number(push.values_received) + " of " +
                                                     Number(push.header.count) + " values came");
  }
  if (!push.is_finite) {
    return Refusal(PushOutcome::kNonfinite, "the gradient has a NaN or an infinity");
  }
  return std::nullopt;
}

}  // namespace slipstream
