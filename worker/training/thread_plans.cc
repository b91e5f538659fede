#include "worker/training/thread_plans.h"

#include <utility>

namespace slipstream {

absl::StatusOr<std::unique_ptr<ThreadPlans>> ThreadPlans::Make(size_t count, size_t parameters,
                                                               const MakePlan& make) {
  auto made = std::unique_ptr<ThreadPlans>(new ThreadPlans(count));
  const absl::Status status = made->threads_.Run([&](size_t thread) {
    absl::StatusOr<std::unique_ptr<Plan>> plan = make(thread);
    if (!plan.ok()) return plan.status();
    made->plans_[thread] = *std::move(plan);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  made->model_.emplace(parameters, made->plans_.front()->gradients_host());
  return made;
}

ThreadPlans::~ThreadPlans() {
  threads_
      .Run([this](size_t thread) {
        plans_[thread].reset();
        return absl::OkStatus();
      })
      .IgnoreError();
}

void ThreadPlans::CopyWeights(size_t thread) {
  Plan& plan = *plans_[thread];
  const std::span<float> weights = plan.weights_host();
  model_->CopyWeights(weights);
  plan.WeightsArrived({0, weights.size()});
}

}  // namespace slipstream
