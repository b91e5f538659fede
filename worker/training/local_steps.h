#ifndef SLIPSTREAM_WORKER_TRAINING_LOCAL_STEPS_H_
#define SLIPSTREAM_WORKER_TRAINING_LOCAL_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "common/layout/tensor_layout.h"
#include "common/policy/learning_rate.h"
#include "common/protocol/batch_ranges.h"
#include "common/settings/run_spec.h"
#include "worker/algorithm/worker_algorithm.h"
#include "worker/compute/plan.h"
#include "worker/core/fragments.h"
#include "worker/training/host_model.h"
#include "worker/training/thread_model.h"
#include "worker/training/thread_plans.h"

namespace slipstream {

/// The steps that a worker takes on its own weights between a pull and a push: its algorithm, the
/// local model that the algorithm changes, and the optimizer's schedule, which follows the numbers
/// of mini-batches.
///
/// Several threads may take steps on the same weights at once ("Hogwild", shared_model.h): each has
/// a plan that computes from a copy of the weights, and steps the shared ones by its gradient. What
/// an algorithm does at its first gradient, or before that, precedes all other steps of the push.
///
/// Not thread-safe: one owner, with these exceptions. Threads with plans of their own may call
/// OnGradient, ForgetState, steps() and the const functions at once.
class LocalSteps {
 public:
  /// Makes the local steps for the arenas of a plan that computes a net of this layout, and a
  /// training set of `examples` examples. Null if the run's algorithm has no local weights.
  /// `threads`: the plans of several threads, whose shared model `arenas` is; null for one thread.
  /// All arguments must outlive the result. REQUIRES: with threads, a rule without state and no
  /// fragments.
  static std::unique_ptr<LocalSteps> Make(const RunSpec& run, const TensorLayout& layout,
                                          uint64_t examples, ModelArenas& arenas,
                                          ThreadPlans* threads = nullptr);

  /// The local steps on a model whose owner has the rule of the steps, and its state. `landing` and
  /// `outbox`: the model's memory that the functions of these names return. The model must outlive
  /// this object. REQUIRES: the run's algorithm has local weights.
  LocalSteps(const RunSpec& run, uint64_t examples, LocalModel& model, std::span<float> landing,
             std::span<const float> outbox);

  /// Whether the worker keeps its weights from push to push (AlgorithmRow::keeps_weights).
  bool keeps_weights() const { return keeps_weights_; }

  /// When the parts of a push leave; of one fragment, if the algorithm has none.
  const Fragments& fragments() const { return fragments_; }
  bool has_fragments() const { return fragments_.count() > 1; }

  /// The memory into which the client writes the servers' weights, if they land apart
  /// (WorkerSpec::lands_apart); else empty.
  std::span<float> landing() const { return landing_; }

  /// The memory of the values to be pushed.
  std::span<const float> outbox() const { return outbox_; }

  /// The number of examples of these mini-batches.
  uint32_t ExamplesOf(const BatchRanges& batches) const;

  /// Begins the steps of a push: the weights for it are there, or are arriving.
  void Begin();

  /// Takes the servers' weights, which are in landing(), as the worker's own. Where weights land
  /// apart this comes before all steps, and after ForgetState.
  void StartFromLanding();
  bool is_started() const;

  /// For a worker that keeps its weights: the newest weights of the servers are in landing(), and
  /// the next call is the push's last OnGradient, or, if there is no gradient, BeforePush. Several
  /// threads have no last gradient, so there it is BeforePush in any case.
  void OnLanding() {
    algorithm_->OnLanding(model_, {0, model_.parameters()}, false);
    has_landed_ = true;
  }

  /// With fragments: weights of a shard, whose range this is, have come to landing().
  void OnFragmentLanding(ParameterRange range);

  /// Whether OnLanding was called since Begin.
  bool has_landed() const { return has_landed_; }

  /// Notes that the last push had no effect on these weights of the servers.
  void OnRefused(ParameterRange range) { algorithm_->OnRefused(model_, range); }

  /// Notes that all weights for the push have arrived. The first gradient shows it, too.
  void BeforeSteps();

  /// Takes a step with the gradient of mini-batch `batch`, which the plan of the calling thread
  /// holds. `thread`: its number.
  void OnGradient(uint64_t batch, size_t thread = 0);

  /// Writes the values of a shard, whose range this is, to outbox(). REQUIRES: steps() > 0.
  void BeforePush(ParameterRange range);

  /// Resets the optimizer's state to that before the first step, unless the model's owner has it.
  /// Where weights land apart, the worker starts anew from those of the servers.
  void ForgetState();

  /// The number of steps since Begin.
  uint64_t steps() const;

  // The state that lasts from push to push, between two pushes. If the worker keeps its weights, it
  // is complete only once the worker is started, and has undone what had no effect (OnRefused).
  // REQUIRES: the steps are those of a plan (Make).

  /// The state of the optimizer's rule: its arrays, each as large as the model, and its numbers.
  std::vector<std::span<float>> rule_states() { return host_->rule().states(); }
  RuleScalars& rule_scalars() { return host_->rule().scalars(); }

  /// The worker's own weights; empty unless it keeps them.
  std::span<float> kept_weights();

  /// Notes that a saved state has been put in the place of this one: a worker that keeps its
  /// weights goes on from these, and not from the servers'.
  void OnRestored();

 private:
  /// Returns the number of examples of all mini-batches before this one.
  uint64_t ExamplesBefore(uint64_t batch) const;

  // Constant after construction.
  const std::unique_ptr<const WorkerAlgorithm> algorithm_;
  const bool keeps_weights_;
  const Fragments fragments_;
  const uint64_t examples_;
  const uint64_t batch_size_;
  const LearningRate learning_rate_;

  std::unique_ptr<HostModel> host_;  // The model, if it is a plan's; else null.
  LocalModel& model_;

  /// The model as each of several threads changes it; none with one thread, which changes model_.
  std::vector<std::unique_ptr<ThreadModel>> thread_models_;
  const std::span<float> landing_;
  const std::span<const float> outbox_;

  /// With fragments: the shards' parts that were pushed, and not answered by weights yet.
  std::vector<ParameterRange> on_the_way_;
  bool has_landed_ = false;

  mutable Mutex mutex_;  // The first gradient of a push is taken under it.
  bool is_started_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_weights_ ABSL_GUARDED_BY(mutex_) = false;  // BeforeSteps was called since Begin.
  uint64_t steps_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_LOCAL_STEPS_H_
