#include "worker/training/local_steps.h"

namespace slipstream {

std::unique_ptr<LocalSteps> LocalSteps::Make(const RunSpec& run, const TensorLayout& layout,
                                             uint64_t examples, Plan& plan) {
  if (!RowOf(run.worker.algorithm).has_local_weights) return nullptr;
  return std::unique_ptr<LocalSteps>(new LocalSteps(run, layout, examples, plan));
}

LocalSteps::LocalSteps(const RunSpec& run, const TensorLayout& layout, uint64_t examples,
                       Plan& plan)
    : algorithm_(MakeWorkerAlgorithm(run.worker.algorithm, {.parameters = run.worker.parameters,
                                                            .workers = run.cluster.workers})),
      examples_(examples),
      batch_size_(run.training.batch_size),
      learning_rate_(run.optimizer.learning_rate, run.optimizer.schedule,
                     {.examples_per_epoch = examples, .epochs = run.training.epochs}),
      model_(run.optimizer, layout, RowOf(run.worker.algorithm).keeps_weights, plan),
      landing_(model_.landing()) {}

void LocalSteps::StartFromLanding() {
  using Arena = LocalModel::Arena;
  model_.Combine(Arena::kWeights, 1, Arena::kLanding, 0, Arena::kLanding);
  is_started_ = true;
}

void LocalSteps::ForgetState() {
  model_.ForgetState();
  is_started_ = false;
}

void LocalSteps::OnGradient(uint64_t batch) {
  const uint64_t batches_per_epoch = (examples_ + batch_size_ - 1) / batch_size_;
  const uint64_t examples_before =
      batch / batches_per_epoch * examples_ + batch % batches_per_epoch * batch_size_;
  algorithm_->OnGradient(model_,
                         {.number = steps_, .learning_rate = learning_rate_.At(examples_before)});
  ++steps_;
}

}  // namespace slipstream
