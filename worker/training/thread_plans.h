#ifndef SLIPSTREAM_WORKER_TRAINING_THREAD_PLANS_H_
#define SLIPSTREAM_WORKER_TRAINING_THREAD_PLANS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/plan.h"
#include "worker/training/compute_threads.h"
#include "worker/training/shared_model.h"

namespace slipstream {

/// The plans of a worker that computes on several threads, one for each, and the model that the
/// threads share. Each plan has weights, a gradient and activations of its own, and computes on its
/// thread alone.
///
/// Not thread-safe: one owner, whose thread is number 0. Within threads().Run, the work of a thread
/// may use its own plan, and the shared model as that says.
class ThreadPlans {
 public:
  /// Makes the plan of the thread with this number, which calls it; several do at once.
  using MakePlan = std::function<absl::StatusOr<std::unique_ptr<Plan>>(size_t thread)>;

  /// Makes `count` plans for a net of `parameters` parameters. Fails as `make` does.
  static absl::StatusOr<std::unique_ptr<ThreadPlans>> Make(size_t count, size_t parameters,
                                                           const MakePlan& make);
  ~ThreadPlans();
  ThreadPlans(const ThreadPlans&) = delete;
  ThreadPlans& operator=(const ThreadPlans&) = delete;

  ComputeThreads& threads() { return threads_; }
  const std::vector<std::unique_ptr<Plan>>& plans() const { return plans_; }

  /// The shared model. Its gradients_host() is that of the first plan.
  SharedModel& model() { return *model_; }

  /// Gives a thread's plan the shared weights as they are, for its next step.
  void CopyWeights(size_t thread);

 private:
  explicit ThreadPlans(size_t count) : threads_(count), plans_(count) {}

  ComputeThreads threads_;
  std::vector<std::unique_ptr<Plan>> plans_;  // By number of thread.
  std::optional<SharedModel> model_;          // Set once the plans are made.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_THREAD_PLANS_H_
