#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_LOSS_MATH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_LOSS_MATH_H_

#include <cmath>
#include <cstdint>

#include "worker/compute/cuda/host_device.h"

namespace slipstream::cuda {

/// The computation of loss_kernels.h for one example; twins of cpu/losses.h.
///
/// The lanes that work on an example (on a GPU, the threads of one warp) share its outputs: lane l
/// of n takes l, l + n, … A Lanes type has: uint32_t index(), count(); Largest Max(Largest); T
/// Sum(T), which give all lanes the result. All lanes make the same calls and get the same results.

/// A value and its position; of equal values the first counts as the larger.
struct Largest {
  float value = 0;
  uint32_t index = UINT32_MAX;  // None yet.

  PS_HOST_DEVICE bool IsBelow(const Largest& other) const {
    if (other.index == UINT32_MAX) return false;
    if (index == UINT32_MAX || value < other.value) return true;
    return value == other.value && other.index < index;
  }
};

struct RowLoss {
  double loss = 0;       // Cross-entropy, or the sum of squares.
  uint32_t correct = 0;  // 1 if the largest logit is the label's.
};

/// A single lane that does all the work, on the host.
struct OneLane {
  uint32_t index() const { return 0; }
  uint32_t count() const { return 1; }
  Largest Max(const Largest& largest) const { return largest; }
  template <typename T>
  T Sum(T value) const {
    return value;
  }
};

/// Returns the cross-entropy of softmax(row) against `label`. Writes the gradient times `share`
/// unless `gradient` is null.
template <typename Lanes>
PS_HOST_DEVICE RowLoss SoftmaxRow(const Lanes& lanes, const float* row, uint32_t classes,
                                  uint32_t label, float share, float* gradient) {
  Largest largest;
  for (uint32_t i = lanes.index(); i < classes; i += lanes.count()) {
    const Largest here = {row[i], i};
    if (largest.IsBelow(here)) largest = here;
  }
  largest = lanes.Max(largest);
  float sum = 0;
  for (uint32_t i = lanes.index(); i < classes; i += lanes.count()) {
    const float exponential = ::expf(row[i] - largest.value);
    if (gradient != nullptr) gradient[i] = exponential;
    sum += exponential;
  }
  sum = lanes.Sum(sum);
  if (gradient != nullptr) {
    for (uint32_t i = lanes.index(); i < classes; i += lanes.count()) {
      gradient[i] = gradient[i] / sum * share - (i == label ? share : 0.0f);
    }
  }
  RowLoss result;
  result.loss = ::logf(sum) - (row[label] - largest.value);
  result.correct = largest.index == label ? 1 : 0;
  return result;
}

/// Returns the sum of (output − target)² of one example. Writes share (output − target) unless
/// `gradient` is null.
template <typename Lanes>
PS_HOST_DEVICE RowLoss SquaredErrorRow(const Lanes& lanes, const float* row, const float* targets,
                                       uint32_t outputs, float share, float* gradient) {
  double sum = 0;
  for (uint32_t i = lanes.index(); i < outputs; i += lanes.count()) {
    const double difference = static_cast<double>(row[i]) - targets[i];
    sum += difference * difference;
    if (gradient != nullptr) gradient[i] = share * (row[i] - targets[i]);
  }
  RowLoss result;
  result.loss = lanes.Sum(sum);
  return result;
}

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_LOSS_MATH_H_
