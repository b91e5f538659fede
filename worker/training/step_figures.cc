#include "worker/training/step_figures.h"

#include <algorithm>
#include <utility>

#include "common/base/limits.h"

namespace slipstream {

void StepFigures::OnStep(const Step& step) {
  MutexLock lock(mutex_);
  if (steps_ == 0) first_turn_ = step.turn;
  ++steps_;
  examples_ += step.examples;
  // A clock that was set may give any time. Such a step counts as none.
  const absl::Duration computed = step.backward_end - step.forward_begin - step.waited;
  sums_.compute += std::max(absl::ZeroDuration(), computed) / step.threads;
  sums_.blocked += std::max(absl::ZeroDuration(), step.blocked + step.waited) / step.threads;
  Mark();
  window_.push_back(step);
  if (window_.size() > kWindowSteps) window_.pop_front();
}

double StepFigures::Sums::Overlap() const {
  return compute > absl::ZeroDuration() ? absl::FDivDuration(compute, compute + blocked) : 0;
}

void StepFigures::Mark() {
  if (steps_ % stride_ != 0) return;
  marks_.push_back(sums_);
  if (marks_.size() < kMarksMax) return;
  // Keep every second, and from now on mark half as often.
  for (size_t i = 0; i < kMarksMax / 2; ++i) marks_[i] = marks_[2 * i + 1];
  marks_.resize(kMarksMax / 2);
  stride_ *= 2;
}

void StepFigures::OnTransfer(GradientClient::Transfer transfer) {
  absl::Duration longest;
  for (const LaneTimes& lane : transfer.lanes) longest = std::max(longest, lane.busy);
  MutexLock lock(mutex_);
  communication_ += longest;
  // The step is still in the window, because few steps are taken while a gradient is on its way.
  const auto step = std::find_if(window_.rbegin(), window_.rend(),
                                 [&](const Step& known) { return known.number == transfer.step; });
  if (step == window_.rend()) return;
  const size_t shards = std::max<size_t>(1, transfer.lanes.size());
  recent_.push_back({*step, std::move(transfer.lanes)});
  if (recent_.size() > std::clamp<size_t>(kLanesTold / shards, 1, kStepsTold)) recent_.pop_front();
}

void StepFigures::OnProgress(std::vector<UnitProgress> progress) {
  MutexLock lock(mutex_);
  progress_ = std::move(progress);
}

void StepFigures::OnSplitPushes(uint64_t split_pushes) {
  MutexLock lock(mutex_);
  split_pushes_ = split_pushes;
}

void StepFigures::OnDone(std::vector<UnitProgress> progress, absl::Time now) {
  MutexLock lock(mutex_);
  progress_ = std::move(progress);
  done_at_ = std::min(done_at_, now);
}

void StepFigures::OnNonfinite(const NonfiniteSteps::Count& count) {
  MutexLock lock(mutex_);
  nonfinite_ = count;
}

StepFigures::Figures StepFigures::Read(absl::Time now) const {
  MutexLock lock(mutex_);
  Figures figures;
  figures.steps = steps_;
  figures.examples = examples_;
  figures.progress = progress_;
  figures.split_pushes = split_pushes_;
  figures.is_done = done_at_ != absl::InfiniteFuture();
  figures.nonfinite = nonfinite_;
  if (steps_ == 0) return figures;
  double correct = 0;
  double examples = 0;
  for (const Step& step : window_) {
    examples += step.examples;
    correct += step.correct.value_or(0);
    if (!step.loss.has_value()) continue;
    figures.recent_examples += step.examples;
    figures.train_loss += static_cast<double>(*step.loss) * step.examples;
  }
  figures.train_loss /= std::max(1.0, static_cast<double>(figures.recent_examples));
  if (window_.back().correct) figures.train_accuracy = correct / examples;
  // The rate counts up to now, not to the last step, so that it falls for a worker that stands
  // still. It stays for a worker that is done.
  now = std::min(now, done_at_);
  figures.examples_per_second =
      examples / std::max(1e-9, absl::ToDoubleSeconds(now - window_.front().turn));
  figures.steps_per_second = Speed();
  figures.recent.assign(recent_.begin(), recent_.end());
  ReadShares(now, figures);
  return figures;
}

double StepFigures::Speed() const {
  if (steps_ < kSpeedSteps) return 0;
  absl::Duration computed;
  uint64_t batches = 0;
  for (const Step& step : window_) {
    batches += step.batches;
    computed += (step.backward_end - step.forward_begin - step.waited + step.update) / step.threads;
  }
  if (computed <= absl::ZeroDuration()) return 0;
  // A clock that was set may give any time.
  const double speed = static_cast<double>(batches) / absl::ToDoubleSeconds(computed);
  return std::min(speed, kStepsPerSecondMax);
}

void StepFigures::ReadShares(absl::Time now, Figures& figures) const {
  const double elapsed = std::max(1e-9, absl::ToDoubleSeconds(now - first_turn_));
  const double compute = absl::ToDoubleSeconds(sums_.compute);
  const double communication = absl::ToDoubleSeconds(communication_);
  const double blocked = absl::ToDoubleSeconds(sums_.blocked);
  // The exchanges of two gradients in flight overlap, so their times together may exceed the time.
  figures.compute_share = std::min(1.0, compute / elapsed);
  figures.communication_share = std::min(1.0, communication / elapsed);
  // The thread stands still a little longer than the communication that it waits for, so the
  // difference may be negative.
  if (communication > 0) figures.communication_hidden = std::max(0.0, 1 - blocked / communication);
  figures.overlap = sums_.Overlap();
  const size_t quarter = marks_.size() / 4;
  const Sums middle =
      quarter > 0 ? marks_[marks_.size() - 1 - quarter] - marks_[quarter - 1] : sums_;
  figures.steady_overlap = middle.Overlap();
}

}  // namespace slipstream
