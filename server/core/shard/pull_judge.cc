#include "server/core/shard/pull_judge.h"

#include <limits>

namespace slipstream {

PullRequest PullJudge::InThisGeneration(PullRequest request) const {
  if (request.min_generation == state_.versions.generation()) return request;
  request.min_version = {};
  request.held.reset();
  request.sequence = Sequence{1};
  return request;
}

std::optional<PullRefusal> PullJudge::Refuse(const PullRequest& request) const {
  // A reader that pulls one shard by itself need not know how the model was cut.
  const bool takes_any_map = request.shard_map == 0 && !request.identity.has_value();
  if (!state_.run.plan.has_value()) return PullRefusal::kNoModel;
  if (request.shard_map != state_.run.plan->shard_map && !takes_any_map) {
    return PullRefusal::kWrongShardMap;
  }
  // The generation of one shard is one of all only where shards are in step. A worker that has
  // missed the end of such a stage learns of it from the answer.
  const bool is_later = request.min_generation > state_.versions.generation();
  if (rules_.traits().in_step && is_later) return PullRefusal::kLaterGeneration;
  if (auto refusal = RefuseIdentity(request)) return refusal;
  const bool is_outsider = !request.identity.has_value();
  const ShardMachineOptions& options = rules_.options();
  const size_t most = is_outsider ? options.parked_readers_max : options.parked_of_member_max;
  if (state_.waiting.size() >= options.parked_max ||
      state_.waiting.Pulls(ReaderOf(request)) >= most) {
    return PullRefusal::kTooManyParked;
  }
  return std::nullopt;
}

std::optional<PullRefusal> PullJudge::RefuseIdentity(const PullRequest& request) const {
  if (!request.identity.has_value()) return std::nullopt;
  const Identity& identity = *request.identity;
  if (identity.run != state_.run.plan->run) return PullRefusal::kWrongRun;
  const auto verdict = state_.members.CheckMember(identity.worker, identity.incarnation);
  if (verdict == MemberTable::Verdict::kFenced) return PullRefusal::kFenced;
  if (verdict != MemberTable::Verdict::kFresh) return PullRefusal::kUnknownMember;
  if (!request.trains) return std::nullopt;
  if (request.slot >= rules_.options().gradients_in_flight) return PullRefusal::kNoSuchSlot;
  if (request.sequence > state_.members.At(identity.worker).expected()) {
    return PullRefusal::kOutOfSequence;
  }
  return std::nullopt;
}

WaitingCalls::Reached PullJudge::Reached() const {
  WaitingCalls::Reached reached = {.version = published(),
                                   .slowest = state_.pace.Reached(IsFree())};
  if (NothingNewerComes()) reached.version = Version{std::numeric_limits<uint64_t>::max()};
  if (state_.run.phase == Phase::kFailed) {
    reached.slowest = WorkerClock{std::numeric_limits<uint64_t>::max()};
  }
  return reached;
}

bool PullJudge::NothingNewerComes() const {
  return ask_.IsDrained() || state_.run.phase == Phase::kFailed;
}

bool PullJudge::CanServe(const PendingCall& call) const {
  const Version version = call.condition.version;
  if (!state_.initial_weights.is_initialized()) return false;
  if (version > published() && !NothingNewerComes()) return false;
  if (call.condition.slowest > WorkerClock{} && state_.run.phase != Phase::kFailed) return false;
  if (call.goes_on && state_.reader_pace.HoldsBack(decided())) return false;
  if (call.exact.has_value() && !state_.versions.FindKept(*call.exact).has_value()) return false;
  if (!call.is_pull) return true;
  // Until all shards have the weights of one grant, these may be replaced by another client's.
  if (!call.reader.has_value() && state_.run.phase <= Phase::kInitializing) return false;
  if (!call.reader.has_value()) {
    return state_.reader_pulls.HasPlaceFor(VersionFor(call), rules_.options().reader_pulls_max,
                                           rules_.options().versions_kept);
  }
  return state_.members.PullsOf(call.reader->first, call.reader->second) == 0;
}

bool PullJudge::IsGone(const Stamp& stamp) const {
  if (!state_.initial_weights.is_initialized()) return false;
  if (state_.versions.FindKept(stamp).has_value()) return false;
  // At the end of a policy's stage the shard has drained, too, and goes on.
  const bool nothing_newer_comes = state_.run.phase > Phase::kDraining;
  return nothing_newer_comes || state_.versions.IsPast(stamp);
}

Version PullJudge::VersionFor(const PendingCall& call) const {
  if (call.exact.has_value()) return *state_.versions.FindKept(*call.exact);
  if (!call.is_pull || call.trainers.empty()) return published();
  const PendingCall::Trainer& trainer = call.trainers.front();
  const auto repeated = VersionToRepeat(trainer.worker, trainer.incarnation);
  return repeated >= call.condition.version ? *repeated : published();
}

std::optional<Version> PullJudge::VersionToRepeat(WorkerId worker, Incarnation incarnation) const {
  const MemberRecord* member = state_.members.Find(worker, incarnation);
  // A worker that has pushed nothing in this generation of the shard is not the one whose gradient
  // is in the last round.
  const bool follows = rules_.options().repeats_rounds && member != nullptr &&
                       member->expected() == Sequence{1} && state_.open.did_last.contains(worker) &&
                       !state_.open.round.HasHeardFrom(worker);
  if (!follows || rules_.uses_base_weights()) return std::nullopt;
  if (state_.run.phase >= Phase::kDraining) return std::nullopt;
  const std::optional<RoundWorkPlan>& work = state_.open.work;
  if (work.has_value() && !work->LastOf(worker).has_value()) return std::nullopt;
  if (state_.versions.oldest() == decided()) return std::nullopt;
  return Version{Value(decided()) - 1};
}

bool PullJudge::ReadersWaitForPlace() const {
  return state_.waiting.Any([this](const PendingCall& call) {
    if (!call.is_pull || call.reader.has_value() || call.condition.version > published()) {
      return false;
    }
    return call.exact.has_value() ? state_.versions.FindKept(*call.exact).has_value()
                                  : state_.initial_weights.is_initialized();
  });
}

}  // namespace slipstream
