#ifndef SLIPSTREAM_WORKER_ALGORITHM_LOCAL_MODEL_H_
#define SLIPSTREAM_WORKER_ALGORITHM_LOCAL_MODEL_H_

#include <cstdint>

namespace slipstream {

/// A worker's own model, as an algorithm with local weights changes it: flat arrays in the order of
/// the model's layout, each of the whole model. Where they are is the implementation's affair; an
/// algorithm only says what becomes of them.
///
/// Not thread-safe: one owner, between steps of the plan that computes on the weights.
class LocalModel {
 public:
  enum class Arena : uint8_t {
    /// The weights that the next mini-batch's gradient is computed from. The answer to a pull or
    /// push lands
    /// here.
    kWeights,

    /// The mean gradient of the last mini-batch, until something else is written here. What is here
    /// when a push begins is pushed.
    kGradient,

    /// For the algorithm's use.
    kAnchor,
  };

  virtual ~LocalModel() = default;

  /// One step of the run's optimizer: changes kWeights by kGradient, and the optimizer's state,
  /// which stays from push to push.
  virtual void Step(double learning_rate) = 0;

  /// out ← a x + b y, element by element. `out` may be `x` or `y`.
  virtual void Combine(Arena out, float a, Arena x, float b, Arena y) = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_ALGORITHM_LOCAL_MODEL_H_
