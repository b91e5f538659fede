#ifndef SLIPSTREAM_WORKER_ALGORITHM_LOCAL_MODEL_H_
#define SLIPSTREAM_WORKER_ALGORITHM_LOCAL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/layout/tensor_layout.h"

namespace slipstream {

/// A worker's own model, as an algorithm with local weights changes it: flat arrays of the whole
/// model, in the order of its layout. The implementation decides where the arrays are; an algorithm
/// only says which operations to apply to them.
///
/// Not thread-safe: one owner, between steps of the plan that computes on the weights.
class LocalModel {
 public:
  enum class Arena : uint8_t {
    /// The weights from which the next mini-batch's gradient is computed. The answer to a pull or
    /// push is written here, unless weights land apart (WorkerSpec::lands_apart).
    kWeights,

    /// The mean gradient of the last mini-batch, until something else is written here. When a push
    /// begins, its values are taken from here, unless it goes in fragments. What an algorithm
    /// writes here may take the place of kAnchor's values.
    kGradient,

    /// Free for the algorithm's use. The values of a push in fragments are taken from here: they
    /// have to stay while the next mini-batches write their gradients.
    kAnchor,

    /// The servers' weights, where they land apart; else it may not be used.
    kLanding,
  };

  virtual ~LocalModel() = default;

  /// Takes one step of the run's optimizer: changes kWeights by kGradient, and the optimizer's
  /// state, which lasts from push to push.
  virtual void Step(double learning_rate) = 0;

  /// Computes out ← a x + b y within the range, element by element. `out` may be `x` or `y`.
  virtual void CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b,
                             Arena y) = 0;

  /// The same for the whole model.
  void Combine(Arena out, float a, Arena x, float b, Arena y) {
    CombineWithin({0, parameters()}, out, a, x, b, y);
  }

  /// Copies the range of `from` to `to`.
  void CopyWithin(ParameterRange range, Arena to, Arena from) {
    CombineWithin(range, to, 1, from, 0, from);
  }

  /// The number of values in each arena.
  virtual size_t parameters() const = 0;
};

/// Computes out ← a x + b y, element by element, with both products rounded before the sum, so that
/// every implementation has the same bits. The spans have one size; `out` may be `x` or `y`.
inline void CombineValues(std::span<float> out, float a, std::span<const float> x, float b,
                          std::span<const float> y) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = a * x[i] + b * y[i];
}

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_ALGORITHM_LOCAL_MODEL_H_
