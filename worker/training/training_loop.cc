#include "worker/training/training_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "common/kernels/finite.h"
#include "common/log/log.h"
#include "common/process/steady_time.h"

namespace slipstream {
namespace {

/// The random streams of the run's seed from this number on draw the workers' delays.
constexpr uint64_t kDelayStreams = uint64_t{1} << 32;

/// The least time between two warnings; each covers all steps since the last.
constexpr absl::Duration kWarningInterval = absl::Seconds(1);

}  // namespace

TrainingLoop::TrainingLoop(const Options& options, const Dataset& train,
                           std::span<const std::unique_ptr<Plan>> plans, GradientClient& client,
                           UnitFetcher& units, const Heartbeat& heartbeat, StepFigures& figures,
                           Interruption& interruption)
    : options_(options),
      train_(train),
      plans_(plans),
      slots_(options.threads != nullptr ? 1 : static_cast<uint32_t>(plans.size())),
      client_(client),
      work_(slots_, client, units, figures),
      heartbeat_(heartbeat),
      figures_(figures),
      interruption_(interruption),
      delays_(options.seed, kDelayStreams + Value(options.worker)),
      nonfinite_(options.nonfinite_max) {
  if (options.local_steps != nullptr) {
    exchange_.emplace(LocalExchange::Options{.push_codec = options.push_codec},
                      *options.local_steps, *options.servers);
  }
  for (const std::unique_ptr<Plan>& plan : plans) {
    feeds_.push_back(std::make_unique<BatchFeed>(train, options.batch_size, options.seed, *plan));
  }
}

absl::Status TrainingLoop::Run() {
  uint32_t slot = 0;
  while (!interruption_.interrupted()) {
    client_.OnOrders(heartbeat_.orders());
    const absl::Time turn = absl::Now();
    if (absl::Status saved = SaveState(); !saved.ok()) return saved;
    const uint64_t before = steps_;
    const absl::StatusOr<GradientClient::Step> step = client_.Advance(slot);
    if (!step.ok()) return step.status();
    work_.TellFigures();
    const bool is_finished = std::holds_alternative<GradientClient::Finished>(*step);
    absl::Status status;
    if (const auto* compute = std::get_if<GradientClient::Compute>(&*step)) {
      status = options_.local_steps != nullptr
                   ? PushLocalSteps(compute->batches, turn)
                   : PushGradient(slot, compute->batches.front().first, turn);
    } else if (is_finished) {
      const absl::StatusOr<bool> is_over = work_.HeedFinished(slot);
      if (is_over.ok() && *is_over) return work_.Drain();
      status = is_over.status();
    } else {
      status = work_.AwaitUnit();
    }
    if (!status.ok()) return status;
    const bool was_its_turn = is_finished || last_over_ > before;
    if (was_its_turn) slot = (slot + 1) % slots_;
  }
  return absl::CancelledError("stopped");
}

absl::Status TrainingLoop::PushGradient(uint32_t slot, uint64_t index, absl::Time turn) {
  Plan& plan = *plans_[slot];
  if (options_.servers != nullptr && options_.servers->has_free_lanes()) {
    plan.ExpectWeights();
    if (absl::Status taken = options_.servers->TakeNewest(slot); !taken.ok()) return taken;
  }
  StepFigures::Step step = BeginStep(index, turn);
  const Batch batch = feeds_[slot]->Take(index);
  step.examples = ExamplesOf(batch);
  const auto clip_values = [this, &plan](ParameterRange range) {
    options_.clip.ClipValues(plan.gradients_host().subspan(range.begin, range.size()));
  };
  GradientFeed& feed = client_.BeginPush(slot, {.batches = {{index}},
                                                .examples = step.examples,
                                                .step = step.number,
                                                .last_change = clip_values});
  const absl::StatusOr<StepResult> result = Compute(plan, batch, &feed);
  step.backward_end = absl::Now();
  std::optional<std::string> nonfinite;
  if (result.ok())
    nonfinite = NonfinitePart(result->loss, plan.gradients_host(), options_.push_codec);
  absl::Status status = result.status();
  if (status.ok() && !nonfinite) status = PrepareToPush();
  if (!status.ok() || nonfinite) client_.AbortPush(slot);
  if (nonfinite) {
    status = NoteNonfinite(index, *nonfinite);
    if (status.ok()) LeaveOut(slot);
    return status;
  }
  // CANCELLED: weights were replaced or will not come. The client knows which, and what to do.
  if (absl::IsCancelled(result.status())) return absl::OkStatus();
  if (!status.ok()) return status;
  ExpectWeights(slot);
  const absl::Time pushing = absl::Now();
  last_over_ = step.number;
  const PushTrailer trailer = {.loss = result->loss,
                               .clip = options_.clip.FactorOf(plan.gradients_host())};
  if (absl::Status pushed = client_.FinishPush(slot, trailer); !pushed.ok()) return pushed;
  step.blocked += absl::Now() - pushing;
  OnStepDone(step, *result);
  NoteHealthy();
  return absl::OkStatus();
}

absl::Status TrainingLoop::PushLocalSteps(const BatchRanges& batches, absl::Time turn) {
  LocalSteps& local = *options_.local_steps;
  absl::Status status = exchange_->AwaitAnswers(batches);
  if (status.ok()) {
    exchange_->Settle();
    status = TakeLocalSteps(batches, turn);
  }
  if (status.ok() && local.keeps_weights() && local.steps() > 0 && !local.has_landed()) {
    status = exchange_->Land(batches);
  }
  // CANCELLED: the client knows what to do, as in PushGradient, unless a part has left.
  if (!status.ok()) {
    const bool goes_on =
        absl::IsCancelled(status) && !interruption_.interrupted() && !exchange_->has_begun();
    return goes_on ? absl::OkStatus() : status;
  }
  std::optional<std::string> nonfinite;
  if (local.steps() > 0) nonfinite = exchange_->PrepareRest(ReadTaken().loss);
  if (nonfinite) {
    status = NoteNonfinite(ReadTaken().last_batch, *nonfinite);
    if (!status.ok()) return status;
  }
  const bool counts = local.steps() > 0 && !nonfinite;
  client_.BeginPush(0, GradientOf(batches));
  if (!counts) {
    // The state may be non-finite like the weights, and kept weights give nothing finite again.
    if (nonfinite || !local.landing().empty()) local.ForgetState();
    client_.AbortPush(0);
    LeaveOut(0);
    return absl::OkStatus();
  }
  if (status = PrepareToPush(); !status.ok()) {
    client_.AbortPush(0);
    return status;
  }
  ExpectWeights(0);
  last_over_ = steps_;
  if (status = client_.FinishPush(0, {.loss = ReadTaken().loss}); !status.ok()) return status;
  NoteHealthy();
  return absl::OkStatus();
}

absl::Status TrainingLoop::TakeLocalSteps(const BatchRanges& batches, absl::Time turn) {
  options_.local_steps->Begin();
  {
    MutexLock lock(mutex_);
    taken_.examples = 0;
  }
  BatchDealer dealer(batches);
  ThreadPlans* threads = options_.threads;
  if (threads == nullptr) return TakeSteps(0, dealer, batches, turn);
  if (!threads->model().AwaitWeights()) return absl::CancelledError("the weights did not come");
  return threads->threads().Run(
      [&](size_t thread) { return TakeSteps(thread, dealer, batches, turn); });
}

absl::Status TrainingLoop::TakeSteps(size_t thread, BatchDealer& dealer, const BatchRanges& batches,
                                     absl::Time turn) {
  const absl::Cleanup stops = [&dealer] { dealer.Stop(); };  // Also if something throws.
  uint64_t taken = 0;
  while (const std::optional<uint64_t> index = dealer.Take()) {
    absl::Status status = absl::CancelledError("stopped");
    if (!interruption_.interrupted()) status = StepLocally(thread, *index, batches, turn);
    turn = absl::Now();
    if (status.ok()) {
      MutexLock lock(mutex_);
      taken_.last_batch = *index;
    }
    if (status.ok() && options_.local_steps->has_fragments()) {
      status = exchange_->ExchangeFragments(GradientOf(batches), ++taken, ReadTaken().loss,
                                            [this] { return PrepareToPush(); });
    }
    if (!status.ok() || exchange_->is_spoilt()) return status;
  }
  return absl::OkStatus();
}

GradientClient::Gradient TrainingLoop::GradientOf(const BatchRanges& batches) const {
  // When the first part leaves, nobody knows yet whether later steps will be left out.
  const bool has_fragments = options_.local_steps->has_fragments();
  const uint64_t examples =
      has_fragments ? options_.local_steps->ExamplesOf(batches) : ReadTaken().examples;
  return {.batches = batches, .examples = static_cast<uint32_t>(examples), .step = steps_};
}

absl::Status TrainingLoop::SaveState() {
  if (options_.state == nullptr || !options_.state->is_due()) return absl::OkStatus();
  if (absl::Status status = client_.Drain(); !status.ok()) return status;
  const LocalSteps* local = options_.local_steps;
  if (local != nullptr && local->keeps_weights()) exchange_->UndoWithoutEffect();
  options_.state->Save(steps_);
  return absl::OkStatus();
}

absl::Status TrainingLoop::StepLocally(size_t thread, uint64_t index, const BatchRanges& batches,
                                       absl::Time turn) {
  Plan& plan = *plans_[thread];
  StepFigures::Step step = BeginStep(index, turn);
  const Batch batch = feeds_[thread]->Take(index);
  step.examples = ExamplesOf(batch);
  if (options_.threads != nullptr) options_.threads->CopyWeights(thread);
  const absl::StatusOr<StepResult> result = Compute(plan, batch, nullptr);
  step.backward_end = absl::Now();
  if (!result.ok()) return result.status();
  if (const auto nonfinite = NonfinitePart(result->loss, plan.gradients_host())) {
    // Weights that are no numbers come from the state of the rule, which would spoil later ones,
    // too.
    const std::span<const float> weights = plan.weights_host();
    if (!AllFinite({std::as_bytes(weights)})) options_.local_steps->ForgetState();
    return NoteNonfinite(index, *nonfinite);  // Later steps continue from the weights before it.
  }
  // Several threads have no last gradient, and land after all of them (PushLocalSteps).
  const bool is_last = index == EndOf(batches) - 1 && options_.threads == nullptr;
  if (options_.local_steps->keeps_weights() && is_last) {
    if (absl::Status status = exchange_->Land(batches); !status.ok()) return status;
    step.blocked += absl::Now() - step.backward_end;
  }
  const absl::Time update_begin = absl::Now();
  options_.clip.Clip(plan.gradients_host());
  options_.local_steps->OnGradient(index, thread);
  step.update = absl::Now() - update_begin;
  {
    MutexLock lock(mutex_);
    taken_.loss = result->loss;
    taken_.examples += step.examples;
  }
  OnStepDone(step, *result);
  return absl::OkStatus();
}

StepFigures::Step TrainingLoop::BeginStep(uint64_t index, absl::Time turn) {
  StepFigures::Step step;
  step.number = ++steps_;
  step.batch = index;
  if (options_.threads != nullptr) step.threads = static_cast<uint32_t>(plans_.size());
  step.turn = turn;
  step.forward_begin = absl::Now();
  step.blocked = step.forward_begin - turn;
  return step;
}

uint32_t TrainingLoop::ExamplesOf(const Batch& batch) const {
  return static_cast<uint32_t>(batch.CountOf(train_.shape.elements()));
}

absl::StatusOr<StepResult> TrainingLoop::Compute(Plan& plan, const Batch& batch,
                                                 GradientListener* listener) {
  const absl::Time begin = SteadyNow();
  if (absl::Status status = plan.StartStep(batch, listener); !status.ok()) return status;
  absl::StatusOr<StepResult> result = plan.FinishStep();
  if (!result.ok() || options_.slowdown.is_none()) return result;
  // The time spent waiting for weights is left out, because a slow machine would not wait longer.
  const absl::Duration computed = SteadyNow() - begin - result->waited;
  const absl::Duration rest = options_.slowdown.ExtraTime(std::max(computed, absl::ZeroDuration()));
  if (!interruption_.Sleep(rest)) return absl::CancelledError("stopped");
  return result;
}

void TrainingLoop::OnStepDone(StepFigures::Step step, const StepResult& result) {
  step.forward_end = result.forward_end;
  step.waited = result.waited;
  step.correct = result.correct;
  step.loss = result.loss;
  figures_.OnStep(step);
}

TrainingLoop::Taken TrainingLoop::ReadTaken() const {
  MutexLock lock(mutex_);
  return taken_;
}

void TrainingLoop::NoteHealthy() {
  MutexLock lock(mutex_);
  if (nonfinite_.count().in_a_row > 0) {
    nonfinite_.OnHealthy();
    figures_.OnNonfinite(nonfinite_.count());
  }
}

absl::Status TrainingLoop::PrepareToPush() {
  if (options_.push_delay_max > absl::ZeroDuration() &&
      !interruption_.Sleep(options_.push_delay_max * delays_.Unit())) {
    return absl::CancelledError("stopped");
  }
  return work_.Prefetch();
}

absl::Status TrainingLoop::NoteNonfinite(uint64_t index, const std::string& what) {
  MutexLock lock(mutex_);
  const absl::Status status = nonfinite_.OnNonfinite(index, what);
  const NonfiniteSteps::Count& count = nonfinite_.count();
  figures_.OnNonfinite(count);
  if (SteadyNow() - warned_ >= kWarningInterval) {
    warned_ = SteadyNow();
    LogWarning(
        "left out a mini-batch without finite numbers",
        {{"batch", index}, {"gave", what}, {"in_a_row", count.in_a_row}, {"total", count.total}});
  }
  return status;
}

void TrainingLoop::LeaveOut(uint32_t slot) {
  ExpectWeights(slot);
  last_over_ = steps_;
  client_.Skip(slot);
  figures_.OnProgress(client_.done().units);
}

void TrainingLoop::ExpectWeights(uint32_t slot) {
  const LocalSteps* local = options_.local_steps;
  const bool lands_apart = local != nullptr && !local->landing().empty();
  if (client_.goes_on() || lands_apart) return;
  if (options_.threads != nullptr) {
    options_.threads->model().ExpectWeights();
  } else {
    plans_[slot]->ExpectWeights();
  }
}

}  // namespace slipstream
