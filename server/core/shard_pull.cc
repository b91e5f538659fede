// The part of ShardCore that decides about pulls, and when whoever waits is answered.

#include <algorithm>
#include <utility>
#include <variant>

#include "server/core/shard_core.h"

namespace slipstream {

std::optional<Refuse> ShardCore::RefusePull(const PullRequest& request) const {
  // A reader that takes one shard for itself need not know how the model was cut.
  const bool takes_any_map = request.shard_map == 0 && !request.identity.has_value();
  if (!plan_.has_value()) return Refuse{Refuse::Reason::kNoModel};
  if (request.shard_map != plan_->shard_map && !takes_any_map) {
    return Refuse{Refuse::Reason::kWrongShardMap};
  }
  if (auto refusal = RefuseIdentity(request)) return refusal;
  const bool is_outsider = !request.identity.has_value();
  const size_t most = is_outsider ? options_.parked_readers_max : options_.parked_of_member_max;
  if (parked_.size() >= options_.parked_max || ParkedPulls(ReaderOf(request)) >= most) {
    return Refuse{Refuse::Reason::kTooManyParked};
  }
  return std::nullopt;
}

std::optional<Refuse> ShardCore::RefuseIdentity(const PullRequest& request) const {
  if (!request.identity.has_value()) return std::nullopt;
  const Identity& identity = *request.identity;
  if (identity.run != plan_->run) return Refuse{Refuse::Reason::kWrongRun};
  const auto verdict = members_.CheckMember(identity.worker, identity.incarnation);
  if (verdict == MemberTable::Verdict::kFenced) return Refuse{Refuse::Reason::kFenced};
  if (verdict != MemberTable::Verdict::kFresh) return Refuse{Refuse::Reason::kUnknownMember};
  if (!request.trains) return std::nullopt;
  if (request.slot >= options_.gradients_in_flight) return Refuse{Refuse::Reason::kNoSuchSlot};
  if (request.sequence > members_.At(identity.worker).expected()) {
    return Refuse{Refuse::Reason::kOutOfSequence};
  }
  return std::nullopt;
}

ShardCore::Reader ShardCore::ReaderOf(const PullRequest& request) {
  if (!request.identity.has_value()) return std::nullopt;
  return std::pair(request.identity->worker, request.identity->incarnation);
}

PullDecision ShardCore::OnPull(const PullRequest& request) {
  if (const auto refusal = RefusePull(request)) return {.outcome = *refusal};
  PullDecision decision;
  Wanted wanted = {.version = request.min_version,
                   .slot = request.slot,
                   .is_pull = true,
                   .reader = ReaderOf(request)};
  // One that comes after the push it was made for comes from the network alone: its sender has gone
  // on, and will not compute from what it is answered.
  decision.is_to_train = request.trains && request.identity.has_value() &&
                         request.sequence == members_.At(request.identity->worker).expected();
  if (decision.is_to_train) {
    wanted.trainer = request.identity->worker;
    wanted.version = std::max(wanted.version, OldestToTrainOn(*wanted.trainer, wanted.slot));
    OweFrom(*wanted.trainer, wanted.version);
    if (wanted.version > decided_) ExcuseFromOpenRound(*wanted.trainer, decision.effects);
  }
  std::visit([&decision](auto outcome) { decision.outcome = outcome; }, ServeOrPark(wanted));
  return decision;
}

void ShardCore::OweFrom(WorkerId worker, Version version) {
  std::optional<Version>& owes_from = members_.At(worker).owes_from;
  if (!owes_from.has_value()) owes_from = version;
}

void ShardCore::ExcuseFromOpenRound(WorkerId worker, Effects& effects) {
  if (!is_synchronous() || !is_initialized_ || round_.HasHeardFrom(worker)) return;
  round_.Excuse(worker);
  Advance(effects);
}

Version ShardCore::OldestToTrainOn(WorkerId worker, uint32_t slot) const {
  // A gradient counts in a synchronous round only if it is of the round's own base version.
  if (is_synchronous()) return decided_;
  // Asked again, it is given what it was promised.
  if (const std::optional<Version> promised = members_.At(worker).FindBase(slot)) return *promised;
  if (ParksUntilRoundCloses(worker, slot) && round_.HasHeardFrom(worker)) return Next(decided_);
  // Nothing that the guard would refuse at once, though newer versions may not be published yet.
  const uint64_t bound = guard_.spec().bound;
  const bool is_bounded = guard_.Judge(bound + 1) != StalenessGuard::Verdict::kTake;
  return Version{is_bounded && Value(decided_) > bound ? Value(decided_) - bound : 0};
}

size_t ShardCore::ParkedPulls(const Reader& reader) const {
  return static_cast<size_t>(std::ranges::count_if(parked_, [&reader](const auto& item) {
    return item.second.is_pull && item.second.reader == reader;
  }));
}

size_t ShardCore::ParkedPulls() const {
  return static_cast<size_t>(
      std::ranges::count_if(parked_, [](const auto& item) { return item.second.is_pull; }));
}

bool ShardCore::CanServe(const Wanted& wanted) const {
  const bool nothing_newer_comes = is_drained() || phase_ == Phase::kFailed;
  if (!is_initialized_ || (wanted.version > published_ && !nothing_newer_comes)) return false;
  if (!wanted.is_pull) return true;
  if (!wanted.reader.has_value()) return pulls_of_others_ < options_.reader_pulls_max;
  return members_.PullsOf(wanted.reader->first, wanted.reader->second) == 0;
}

void ShardCore::BeginPull(const Reader& reader) {
  if (reader.has_value()) {
    members_.BeginPull(reader->first, reader->second);
  } else {
    ++pulls_of_others_;
  }
}

std::variant<Serve, Park> ShardCore::ServeOrPark(const Wanted& wanted) {
  if (CanServe(wanted)) {
    if (wanted.is_pull) BeginPull(wanted.reader);
    NoteTrainer(wanted, published_);
    return Serve{published_, WorkFor(wanted.trainer)};
  }
  // The version is fixed now: the rounds that close before it is published count for it.
  NoteTrainer(wanted, wanted.version);
  const Ticket ticket{next_ticket_++};
  parked_.emplace(ticket, wanted);
  return Park{ticket};
}

void ShardCore::NoteTrainer(const Wanted& wanted, Version base) {
  if (!guard_.blocks() || !wanted.trainer.has_value()) return;
  members_.At(*wanted.trainer).AddBase(wanted.slot, base);
}

std::optional<RoundWork> ShardCore::WorkFor(std::optional<WorkerId> trainer) {
  if (!trainer.has_value() || !work_.has_value()) return std::nullopt;
  if (phase_ >= Phase::kDraining) return RoundWork{RoundWork::Kind::kFinished, 0};
  return work_->For(*trainer, Owing());
}

void ShardCore::ReleaseParked(Effects& effects) {
  for (auto it = parked_.begin(); it != parked_.end();) {
    const auto& [ticket, wanted] = *it;
    if (!CanServe(wanted)) {
      ++it;
      continue;
    }
    if (wanted.is_pull) BeginPull(wanted.reader);
    effects.released.push_back({ticket, published_, WorkFor(wanted.trainer)});
    it = parked_.erase(it);
  }
}

}  // namespace slipstream
