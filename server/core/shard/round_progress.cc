#include "server/core/shard/round_progress.h"

#include <optional>
#include <utility>

namespace slipstream {

void RoundProgress::Advance(ShardOutput& output) {
  const Lack lack = ask_.Lacks();
  if (lack.is_held_back() && !std::exchange(state_.open.was_held_back, true)) {
    ++state_.tally.guard_counts.rounds_held_back;
  }
  const bool closes = lack.none();
  std::optional<WorkerId> awaited;
  if (lack.each_awaited && state_.open.awaited.has_value()) {
    awaited = *state_.open.awaited->all().begin();
  }
  for (const Fold& fold : state_.open.round.TakeFolds(awaited, closes)) {
    output.folds.push_back(fold);
  }
  if (closes) CloseRound(output);
  if (output.folds.empty() && !closes) return;
  const std::optional<PushIntake::Draft> draft = state_.intake.TakeDraft();
  if (!draft.has_value() || !closes || AsForecast(output) != draft->forecast) return;
  output.update->is_drafted = output.folds.front().push == draft->push;
}

std::optional<Forecast> RoundProgress::AsForecast(const ShardOutput& output) {
  const Update& update = *output.update;
  if (output.folds.size() != 1 || !output.folds.front().first) return std::nullopt;
  if (output.folds.front().clip != 1.0f || !update.absent.empty()) return std::nullopt;
  if (update.inverse_divisor != 1.0f || update.step_scale != 1.0f) return std::nullopt;
  return Forecast{.from = update.from,
                  .weight = output.folds.front().weight,
                  .learning_rate = update.learning_rate};
}

void RoundProgress::CloseRound(ShardOutput& output) {
  const Round& round = state_.open.round;
  const VersionRecord& before = state_.versions.newest();
  LagTracker& lag = state_.tally.lag;
  Update update = {.from = state_.versions.decided(), .to = Next(state_.versions.decided())};
  VersionRecord made = {.examples = before.examples + round.examples(),
                        .stamp = StampOfRound(),
                        .label = before.label};
  if (round.contributions() == 0) {
    update.is_empty = true;
  } else {
    lag.RecordUpdate(update.to, round.bases());
    const double scale = rules_.compensation().RoundFactor(lag.window_mean());
    const double of_gradient = rules_.rule().normalises ? 1 : scale;
    update.inverse_divisor = static_cast<float>(round.InverseDivisor() * of_gradient);
    update.step_scale = static_cast<float>(scale / of_gradient);
    update.learning_rate = static_cast<float>(rules_.RateAt(before.examples));
    // A rule that normalises steps cancels a factor that all gradients share.
    lag.RecordScale(rules_.rule().normalises ? scale : scale * round.mean_scale());
    update.absent = round.absent();
    made.label = round.last().label;
  }
  state_.versions.Decide(made);
  state_.open.Close(rules_.NewRound(), state_.versions.decided(),
                    rules_.traits().order == PolicyTraits::Order::kRank);
  state_.saves.OnDecided(state_.versions.decided());
  output.update = update;
}

std::optional<Stamp> RoundProgress::StampOfRound() const {
  if (rules_.traits().in_step) return Stamp{.number = Value(Next(state_.versions.decided()))};
  return state_.open.round.contributions() == 0 ? std::nullopt : state_.open.round.last().stamp;
}

void RoundProgress::Excuse(WorkerId worker, ShardOutput& output) {
  const bool is_asked = rules_.traits().one_per_member && state_.initial_weights.is_initialized();
  if (!is_asked || state_.open.round.HasHeardFrom(worker)) return;
  state_.open.Excuse(worker);
  Advance(output);
}

void RoundProgress::OweFrom(WorkerId worker, Version version) {
  MemberRecord& member = state_.members.At(worker);
  if (!member.OweFrom(version) || !state_.open.awaited.has_value()) return;
  state_.open.awaited->Owe(worker, version, state_.open.round.HasHeardFrom(worker),
                           state_.versions.decided());
}

void RoundProgress::EnterPace(WorkerId worker, WorkerClock named) {
  // A worker that joins or comes back continues at the clock of the slowest member, or at the last
  // such clock. Otherwise the others would wait for it until it had caught up.
  const bool is_in_pace = state_.members.At(worker).is_in_pace;
  state_.members.KeepPace(worker, is_in_pace ? named : state_.pace.Entered(named));
  OnPaceChanged();
}

void RoundProgress::OnPaceChanged() {
  if (rules_.traits().keeps_pace) state_.pace.Note(state_.members.SlowestClock());
}

}  // namespace slipstream
