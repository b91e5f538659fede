#include "worker/training/local_steps.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace slipstream {

using Arena = LocalModel::Arena;

std::unique_ptr<LocalSteps> LocalSteps::Make(const RunSpec& run, const TensorLayout& layout,
                                             uint64_t examples, ModelArenas& arenas,
                                             ThreadPlans* threads) {
  if (!RowOf(run.worker.algorithm).has_local_weights) return nullptr;
  auto host = std::make_unique<HostModel>(run.optimizer, layout, run.worker.lands_apart(), arenas);
  const bool has_fragments = run.worker.fragments() > 1;
  auto steps =
      std::make_unique<LocalSteps>(run, examples, *host, host->landing(),
                                   has_fragments ? host->anchor() : arenas.gradients_host());
  if (threads != nullptr) {
    PS_CHECK(!has_fragments);  // A part would leave between the steps of other threads.
    for (const std::unique_ptr<Plan>& plan : threads->plans()) {
      steps->thread_models_.push_back(std::make_unique<ThreadModel>(
          run.optimizer, layout, threads->model(), host->anchor(), plan->gradients_host()));
    }
  }
  steps->host_ = std::move(host);
  return steps;
}

LocalSteps::LocalSteps(const RunSpec& run, uint64_t examples, LocalModel& model,
                       std::span<float> landing, std::span<const float> outbox)
    : algorithm_(MakeWorkerAlgorithm(run.worker.algorithm, {.parameters = run.worker.parameters,
                                                            .workers = run.cluster.workers,
                                                            .fragments = run.worker.fragments()})),
      keeps_weights_(RowOf(run.worker.algorithm).keeps_weights),
      fragments_(run.worker.fragments(),
                 static_cast<uint64_t>(run.worker.parameters["fragment_delay"])),
      examples_(examples),
      batch_size_(run.training.batch_size),
      learning_rate_(run.optimizer.learning_rate, run.optimizer.schedule,
                     {.examples_per_epoch = examples, .epochs = run.training.epochs}),
      model_(model),
      landing_(landing),
      outbox_(outbox) {}

void LocalSteps::Begin() {
  MutexLock lock(mutex_);
  steps_ = 0;
  has_weights_ = false;
  has_landed_ = false;
}

void LocalSteps::BeforeSteps() {
  MutexLock lock(mutex_);
  has_weights_ = true;
  algorithm_->BeforeSteps(model_);
}

bool LocalSteps::is_started() const {
  MutexLock lock(mutex_);
  return is_started_;
}

uint64_t LocalSteps::steps() const {
  MutexLock lock(mutex_);
  return steps_;
}

void LocalSteps::StartFromLanding() {
  const ParameterRange all = {0, model_.parameters()};
  model_.CopyWithin(all, Arena::kWeights, Arena::kLanding);
  model_.CopyWithin(all, Arena::kAnchor, Arena::kLanding);
  on_the_way_.clear();
  MutexLock lock(mutex_);
  is_started_ = true;
}

void LocalSteps::ForgetState() {
  MutexLock lock(mutex_);
  if (host_ != nullptr) host_->ForgetState();
  is_started_ = false;
}

std::span<float> LocalSteps::kept_weights() {
  return keeps_weights_ ? host_->weights() : std::span<float>();
}

void LocalSteps::OnRestored() {
  if (!keeps_weights_) return;
  host_->WeightsArrived();
  MutexLock lock(mutex_);
  is_started_ = true;
}

void LocalSteps::OnFragmentLanding(ParameterRange range) {
  algorithm_->OnLanding(model_, range, std::erase(on_the_way_, range) > 0);
}

void LocalSteps::BeforePush(ParameterRange range) {
  algorithm_->BeforePush(model_, range);
  if (has_fragments()) on_the_way_.push_back(range);
}

uint64_t LocalSteps::ExamplesBefore(uint64_t batch) const {
  const uint64_t batches_per_epoch = (examples_ + batch_size_ - 1) / batch_size_;
  return batch / batches_per_epoch * examples_ + batch % batches_per_epoch * batch_size_;
}

uint32_t LocalSteps::ExamplesOf(const BatchRanges& batches) const {
  uint64_t examples = 0;
  for (const BatchRange& range : batches) {
    examples += ExamplesBefore(range.first + range.count) - ExamplesBefore(range.first);
  }
  return static_cast<uint32_t>(examples);
}

void LocalSteps::OnGradient(uint64_t batch, size_t thread) {
  LocalModel* model = &model_;
  if (!thread_models_.empty()) model = thread_models_[thread].get();
  WorkerAlgorithm::Step step = {.learning_rate = learning_rate_.At(ExamplesBefore(batch))};
  {
    MutexLock lock(mutex_);
    step.number = steps_++;
    if (!std::exchange(has_weights_, true)) algorithm_->BeforeSteps(*model);
    if (step.number == 0) return algorithm_->OnGradient(*model, step);
  }
  algorithm_->OnGradient(*model, step);
}

}  // namespace slipstream
