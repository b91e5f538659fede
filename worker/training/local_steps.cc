#include "worker/training/local_steps.h"

#include <algorithm>

namespace slipstream {

using Arena = LocalModel::Arena;

std::unique_ptr<LocalSteps> LocalSteps::Make(const RunSpec& run, const TensorLayout& layout,
                                             uint64_t examples, ModelArenas& arenas) {
  if (!RowOf(run.worker.algorithm).has_local_weights) return nullptr;
  return std::unique_ptr<LocalSteps>(new LocalSteps(run, layout, examples, arenas));
}

LocalSteps::LocalSteps(const RunSpec& run, const TensorLayout& layout, uint64_t examples,
                       ModelArenas& arenas)
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
      model_(run.optimizer, layout, run.worker.lands_apart(), arenas),
      landing_(model_.landing()),
      outbox_(has_fragments() ? model_.anchor() : arenas.gradients_host()) {}

void LocalSteps::StartFromLanding() {
  const ParameterRange all = {0, model_.parameters()};
  model_.CopyWithin(all, Arena::kWeights, Arena::kLanding);
  model_.CopyWithin(all, Arena::kAnchor, Arena::kLanding);
  on_the_way_.clear();
  is_started_ = true;
}

void LocalSteps::ForgetState() {
  model_.ForgetState();
  is_started_ = false;
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

void LocalSteps::OnGradient(uint64_t batch) {
  algorithm_->OnGradient(
      model_, {.number = steps_, .learning_rate = learning_rate_.At(ExamplesBefore(batch))});
  ++steps_;
}

}  // namespace slipstream
