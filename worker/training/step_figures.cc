#include "worker/training/step_figures.h"

#include <utility>

namespace slipstream {
namespace {

absl::Time Begin(const StepFigures::Step& step) {
  return step.end - step.compute - step.communication;
}

}  // namespace

void StepFigures::OnStep(const Step& step, std::vector<UnitProgress> progress) {
  MutexLock lock(mutex_);
  if (pushes_ == 0) first_begin_ = Begin(step);
  ++pushes_;
  examples_ += step.examples;
  compute_ += step.compute;
  communication_ += step.communication;
  window_.push_back(step);
  if (window_.size() > kWindowSteps) window_.pop_front();
  progress_ = std::move(progress);
}

void StepFigures::OnProgress(std::vector<UnitProgress> progress) {
  MutexLock lock(mutex_);
  progress_ = std::move(progress);
}

void StepFigures::OnDone(std::vector<UnitProgress> progress) {
  MutexLock lock(mutex_);
  progress_ = std::move(progress);
  is_done_ = true;
}

void StepFigures::OnNonfinite(const NonfiniteSteps::Count& count) {
  MutexLock lock(mutex_);
  nonfinite_ = count;
}

StepFigures::Figures StepFigures::Read(absl::Time now) const {
  MutexLock lock(mutex_);
  Figures figures{.pushes = pushes_,
                  .examples = examples_,
                  .progress = progress_,
                  .is_done = is_done_,
                  .nonfinite = nonfinite_};
  if (pushes_ == 0) return figures;
  double examples = 0;
  double correct = 0;
  for (const Step& step : window_) {
    examples += step.examples;
    figures.train_loss += static_cast<double>(step.loss) * step.examples;
    correct += step.correct.value_or(0);
  }
  figures.train_loss /= examples;
  if (window_.back().correct) figures.train_accuracy = correct / examples;
  // To now, not to the last step: a worker that stands still slows down.
  figures.examples_per_second =
      examples / std::max(1e-9, absl::ToDoubleSeconds(now - Begin(window_.front())));
  const double elapsed = std::max(1e-9, absl::ToDoubleSeconds(now - first_begin_));
  figures.compute_share = absl::ToDoubleSeconds(compute_) / elapsed;
  figures.communication_share = absl::ToDoubleSeconds(communication_) / elapsed;
  return figures;
}

}  // namespace slipstream
