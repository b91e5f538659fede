#ifndef SLIPSTREAM_WORKER_PYTHON_CALLERS_MODEL_H_
#define SLIPSTREAM_WORKER_PYTHON_CALLERS_MODEL_H_

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "worker/algorithm/local_model.h"

namespace slipstream {

/// The local model of a program that computes gradients and takes steps itself. The program reads
/// and steps the weights in the memory that this model has, and its gradients are read where they
/// are, a tensor at a time.
///
/// The values to be pushed lie in the memory of kAnchor, so that an algorithm that pushes what it
/// has there copies nothing.
///
/// Not thread-safe: one owner.
class CallersModel final : public LocalModel {
 public:
  /// All arguments must outlive the model, and the spans are as large as it. `values`: the memory
  /// of the values to be pushed. `landing`: that of the servers' weights, which may be `weights`
  /// where they do not land apart.
  CallersModel(const TensorLayout& layout, std::span<float> weights, std::span<float> values,
               std::span<float> landing)
      : layout_(layout), weights_(weights), values_(values), landing_(landing) {}

  /// Sets the gradient of a mini-batch: the values of each tensor, or null for one that has none,
  /// whose gradient is then 0. They must stay as they are until the algorithm knows of them.
  void SetGradient(std::vector<const float*> tensors) { gradient_ = std::move(tensors); }

  /// Does nothing: an algorithm's last call for a gradient is this one, and the program takes the
  /// step when that has returned.
  void Step(double /*learning_rate*/) override {}

  void CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b, Arena y) override;
  size_t parameters() const override { return layout_.parameters(); }

 private:
  std::span<float> ValuesOf(Arena arena);

  /// Returns the values of kGradient within this part of a tensor.
  std::span<const float> GradientWithin(size_t tensor, ParameterRange part);

  // Constant after construction.
  const TensorLayout& layout_;
  const std::span<float> weights_;
  const std::span<float> values_;
  const std::span<float> landing_;

  std::vector<const float*> gradient_;  // By tensor; empty once something else is in kGradient.
  std::vector<float> zeros_;            // As many as the largest tensor without a gradient has.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_PYTHON_CALLERS_MODEL_H_
