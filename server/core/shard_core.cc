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
  if (view.number <= members_.view().number) return effects;
  members_.InstallView(view);
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
  if (reader.has_value()) {
    members_.EndPull(reader->first, reader->second);
  } else {
    PS_CHECK(pulls_of_others_ > 0);
    --pulls_of_others_;
  }
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
      std::max<uint64_t>(1, view().members.size()) * options_.gradients_in_flight;
  return plan_.has_value() ? pushes * plan_->count * sizeof(float) : 0;
}

uint32_t ShardCore::round_size() const {
  return policy_.round_size(static_cast<uint32_t>(view().members.size()));
}

double ShardCore::current_learning_rate() const {
  return learning_rate_.has_value() ? learning_rate_->At(examples_applied_)
                                    : options_.learning_rate;
}

bool ShardCore::is_drained() const {
  if (!is_initialized_ || published_ != decided_ || round_.contributions() > 0) return false;
  return WorkIsDone();
}

bool ShardCore::WorkIsDone() const {
  if (!is_synchronous()) return phase_ >= Phase::kDraining;
  if (phase_ < Phase::kDraining) return work_.has_value() && work_->finished();
  // Without members nobody is left to bring the rounds that are missing.
  return decided_ >= drain_version_ || view().members.empty();
}

// Rounds.

std::vector<WorkerId> ShardCore::Owing() const {
  return members_.Where([this](const MemberRecord& member) {
    return member.owes_from.has_value() && *member.owes_from <= decided_;
  });
}

std::vector<WorkerId> ShardCore::Awaited() const {
  if (!is_synchronous()) return {};
  std::vector<WorkerId> awaited;
  std::ranges::set_difference(Owing(), round_.heard_from(), std::back_inserter(awaited));
  return awaited;
}

RoundPolicy::RoundFacts ShardCore::RoundFacts(size_t awaited) const {
  return {.members = static_cast<uint32_t>(view().members.size()),
          .contributions = round_.contributions(),
          .excused = round_.excused(),
          .awaited = static_cast<uint32_t>(awaited),
          .was_held_back = round_was_held_back_,
          .is_draining = phase_ >= Phase::kDraining};
}

std::vector<WorkerId> ShardCore::HeldBackBy() const {
  if (!guard_.blocks() || is_synchronous()) return {};
  RoundPolicy::RoundFacts facts = RoundFacts(0);
  const bool is_full = policy_.Closes(facts);
  facts.is_held_back = true;
  if (!is_full || policy_.Closes(facts)) return {};
  return members_.Where([this](const MemberRecord& member) {
    return std::ranges::any_of(member.bases, [this](const auto& base) {
      return guard_.HoldsBack(Value(base.second), Value(decided_));
    });
  });
}

bool ShardCore::ParksUntilRoundCloses(WorkerId worker, uint32_t slot) const {
  return options_.is_first && !members_.At(worker).HasBaseBeside(slot) && !HeldBackBy().empty();
}

void ShardCore::Advance(Effects& effects) {
  const std::vector<WorkerId> awaited = Awaited();
  RoundPolicy::RoundFacts facts = RoundFacts(awaited.size());
  facts.is_held_back = !HeldBackBy().empty();
  if (facts.is_held_back && !std::exchange(round_was_held_back_, true)) {
    ++guard_counts_.rounds_held_back;
  }
  const bool closes = policy_.Closes(facts);
  for (const Fold& fold : round_.TakeFolds(awaited, closes)) effects.folds.push_back(fold);
  if (closes) CloseRound(effects);
}

void ShardCore::CloseRound(Effects& effects) {
  Update update = {.from = decided_, .to = Next(decided_)};
  if (round_.contributions() == 0) {
    update.is_empty = true;
  } else {
    lag_.RecordUpdate(update.to, round_.bases());
    const double scale = RoundScale(options_.staleness_scaling, lag_.window_mean());
    const double of_gradient = options_.scales_step ? 1 : scale;
    update.inverse_divisor = static_cast<float>(round_.InverseDivisor() * of_gradient);
    update.step_scale = static_cast<float>(scale / of_gradient);
    update.learning_rate = static_cast<float>(current_learning_rate());
    // A rule that scales steps by itself cancels what multiplies all gradients.
    lag_.RecordScale(options_.scales_step ? scale : scale * round_.mean_scale());
    examples_applied_ += round_.examples();
  }
  decided_ = update.to;
  round_was_held_back_ = false;
  round_ = Round(is_synchronous());
  if (work_.has_value()) work_->NextRound();
  effects.update = update;
}

void ShardCore::CheckInvariants() const {
  members_.CheckInvariants(options_.gradients_in_flight);
  PS_CHECK(published_ <= decided_);
  PS_CHECK(pulls_of_others_ <= options_.reader_pulls_max);
  PS_CHECK(parked_.empty() || Value(parked_.rbegin()->first) < next_ticket_);
}

}  // namespace slipstream
