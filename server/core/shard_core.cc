#include "server/core/shard_core.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/policy/staleness_scaling.h"

namespace slipstream {

ShardCore::ShardCore(const Options& options)
    : options_(options),
      policy_(options.consistency),
      guard_(options.consistency.max_staleness),
      round_(policy_.rounds_are_synchronous()) {}

void ShardCore::SetPlan(const Plan& plan) {
  PS_CHECK(!plan_.has_value());
  plan_ = plan;
  learning_rate_.emplace(options_.learning_rate, options_.schedule,
                         LearningRate::Extent{plan.examples_per_epoch, options_.epochs});
  if (is_synchronous() && options_.is_first) work_.emplace(plan.batches_total);
}

Effects ShardCore::OnView(const View& view) {
  Effects effects;
  if (view.number <= view_.number) return effects;
  std::erase_if(owes_from_, [&](const auto& item) {
    const Member* before = view_.Find(item.first);
    const Member* now = view.Find(item.first);
    return now == nullptr || before == nullptr || now->incarnation != before->incarnation;
  });
  for (const Member& member : view.members) {
    if (member.founding) owes_from_.try_emplace(member.worker, Version{});
  }
  outstanding_.KeepMembers(view_, view);
  view_ = view;
  sequences_.InstallView(view);
  // A smaller view may make the open round complete at once.
  if (is_initialized_) Advance(effects);
  return effects;
}

Effects ShardCore::OnPhase(Phase phase, Version drain_version) {
  Effects effects;
  if (phase < phase_) return effects;
  phase_ = phase;
  drain_version_ = drain_version;
  if (is_initialized_) Advance(effects);
  ReleaseParked(effects);
  return effects;
}

Effects ShardCore::OnWorkEnds() {
  Effects effects;
  if (!work_.has_value()) return effects;
  work_->Close();
  // Pulls that wait for a version which will not be made are answered now.
  ReleaseParked(effects);
  return effects;
}

Effects ShardCore::OnInitialized() {
  PS_CHECK(plan_.has_value() && !is_initialized_);
  is_initialized_ = true;
  Effects effects;
  ReleaseParked(effects);
  return effects;
}

Effects ShardCore::OnPublished(Version version) {
  PS_CHECK(version == Next(published_) && version <= decided_);
  published_ = version;
  Effects effects;
  ReleaseParked(effects);
  return effects;
}

Effects ShardCore::OnPullDone(Reader reader) {
  const auto pulls = pulls_.find(reader);
  PS_CHECK(pulls != pulls_.end());
  if (--pulls->second == 0) pulls_.erase(pulls);
  Effects effects;
  ReleaseParked(effects);
  return effects;
}

void ShardCore::ReleaseBytes(uint64_t bytes) {
  PS_CHECK(bytes <= bytes_queued_);
  bytes_queued_ -= bytes;
}

uint64_t ShardCore::bytes_queued_max() const {
  if (options_.push_bytes_max > 0) return options_.push_bytes_max;
  const uint64_t pushes =
      std::max<uint64_t>(1, view_.members.size()) * options_.gradients_in_flight;
  return plan_.has_value() ? pushes * plan_->count * sizeof(float) : 0;
}

uint32_t ShardCore::round_size() const {
  return policy_.round_size(static_cast<uint32_t>(view_.members.size()));
}

double ShardCore::current_learning_rate() const {
  return learning_rate_.has_value() ? learning_rate_->At(examples_applied_)
                                    : options_.learning_rate;
}

uint32_t ShardCore::pulls_under_way() const {
  uint32_t pulls = 0;
  for (const auto& [reader, count] : pulls_) pulls += count;
  return pulls;
}

bool ShardCore::is_drained() const {
  if (!is_initialized_ || published_ != decided_ || round_.contributions() > 0) return false;
  return WorkIsDone();
}

bool ShardCore::WorkIsDone() const {
  if (!is_synchronous()) return phase_ >= Phase::kDraining;
  if (phase_ < Phase::kDraining) return work_.has_value() && work_->finished();
  // Without members nobody is left to bring the rounds that are missing.
  return decided_ >= drain_version_ || view_.members.empty();
}

// Pulls.

std::optional<Refuse> ShardCore::RefusePull(const PullRequest& request) const {
  // A reader that takes one shard for itself need not know how the model was cut.
  const bool takes_any_map = request.shard_map == 0 && !request.identity.has_value();
  if (!plan_.has_value()) return Refuse{Refuse::Reason::kNoModel};
  if (request.shard_map != plan_->shard_map && !takes_any_map) {
    return Refuse{Refuse::Reason::kWrongShardMap};
  }
  if (auto refusal = RefuseIdentity(request)) return refusal;
  const bool is_outsider = !request.identity.has_value();
  if (is_outsider && ParkedPulls(std::nullopt) >= options_.parked_readers_max) {
    return Refuse{Refuse::Reason::kTooManyParked};
  }
  if (parked_.size() >= options_.parked_max) return Refuse{Refuse::Reason::kTooManyParked};
  return std::nullopt;
}

std::optional<Refuse> ShardCore::RefuseIdentity(const PullRequest& request) const {
  if (!request.identity.has_value()) return std::nullopt;
  const Identity& identity = *request.identity;
  if (identity.run != plan_->run) return Refuse{Refuse::Reason::kWrongRun};
  const auto verdict = sequences_.CheckMember(identity.worker, identity.incarnation);
  if (verdict == SequenceTable::Verdict::kFenced) return Refuse{Refuse::Reason::kFenced};
  if (verdict != SequenceTable::Verdict::kFresh) return Refuse{Refuse::Reason::kUnknownMember};
  if (!request.trains) return std::nullopt;
  if (request.slot >= options_.gradients_in_flight) return Refuse{Refuse::Reason::kNoSuchSlot};
  if (request.sequence > sequences_.Expected(identity.worker)) {
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
                         request.sequence == sequences_.Expected(request.identity->worker);
  if (decision.is_to_train) {
    wanted.trainer = request.identity->worker;
    wanted.version = std::max(wanted.version, OldestToTrainOn(*wanted.trainer, wanted.slot));
    owes_from_.try_emplace(*wanted.trainer, wanted.version);
    if (wanted.version > decided_) ExcuseFromOpenRound(*wanted.trainer, decision.effects);
  }
  std::visit([&decision](auto outcome) { decision.outcome = outcome; }, ServeOrPark(wanted));
  return decision;
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
  if (const std::optional<Version> promised = outstanding_.Find(worker, slot)) return *promised;
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
  const auto pulls = pulls_.find(wanted.reader);
  const uint32_t pulls_max = wanted.reader.has_value() ? 1 : options_.reader_pulls_max;
  return pulls == pulls_.end() || pulls->second < pulls_max;
}

std::variant<Serve, Park> ShardCore::ServeOrPark(const Wanted& wanted) {
  if (CanServe(wanted)) {
    if (wanted.is_pull) ++pulls_[wanted.reader];
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
  outstanding_.Add(*wanted.trainer, wanted.slot, base);
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
    if (wanted.is_pull) ++pulls_[wanted.reader];
    effects.released.push_back({ticket, published_, WorkFor(wanted.trainer)});
    it = parked_.erase(it);
  }
}

// Rounds.

std::vector<WorkerId> ShardCore::Owing() const {
  std::vector<WorkerId> owing;
  for (const auto& [worker, from] : owes_from_) {
    if (from <= decided_) owing.push_back(worker);
  }
  return owing;
}

std::vector<WorkerId> ShardCore::Awaited() const {
  if (!is_synchronous()) return {};
  std::vector<WorkerId> awaited = Owing();
  std::erase_if(awaited, [this](WorkerId worker) { return round_.HasHeardFrom(worker); });
  return awaited;
}

RoundPolicy::RoundFacts ShardCore::RoundFacts() const {
  return {.members = static_cast<uint32_t>(view_.members.size()),
          .contributions = round_.contributions(),
          .excused = round_.excused(),
          .awaited = static_cast<uint32_t>(Awaited().size()),
          .is_draining = phase_ >= Phase::kDraining};
}

std::vector<WorkerId> ShardCore::HeldBackBy() const {
  if (!guard_.blocks() || is_synchronous()) return {};
  RoundPolicy::RoundFacts facts = RoundFacts();
  const bool is_full = policy_.Closes(facts);
  facts.is_held_back = true;
  if (!is_full || policy_.Closes(facts)) return {};
  return outstanding_.Where(
      [this](Version base) { return guard_.HoldsBack(Value(base), Value(decided_)); });
}

bool ShardCore::ParksUntilRoundCloses(WorkerId worker, uint32_t slot) const {
  return options_.is_first && !outstanding_.HasBeside(worker, slot) && !HeldBackBy().empty();
}

void ShardCore::Advance(Effects& effects) {
  RoundPolicy::RoundFacts facts = RoundFacts();
  facts.is_held_back = !HeldBackBy().empty();
  if (facts.is_held_back && !std::exchange(round_was_held_back_, true)) {
    ++guard_counts_.rounds_held_back;
  }
  const bool closes = policy_.Closes(facts);
  for (const Fold& fold : round_.TakeFolds(Awaited(), closes)) effects.folds.push_back(fold);
  if (closes) CloseRound(effects);
}

void ShardCore::CloseRound(Effects& effects) {
  Update update = {.from = decided_, .to = Next(decided_)};
  if (round_.contributions() == 0) {
    update.is_empty = true;
  } else {
    lag_.RecordUpdate(update.to, round_.bases());
    const double scale = RoundScale(options_.staleness_scaling, lag_.window_mean());
    update.inverse_divisor = static_cast<float>(round_.InverseDivisor() * scale);
    update.learning_rate = static_cast<float>(current_learning_rate());
    lag_.RecordScale(scale * round_.mean_scale());
    examples_applied_ += round_.examples();
  }
  decided_ = update.to;
  round_was_held_back_ = false;
  round_ = Round(is_synchronous());
  if (work_.has_value()) work_->NextRound();
  effects.update = update;
}

}  // namespace slipstream
