#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/cuda/loss_kernels.h"

namespace slipstream::cuda {
namespace {

/// The lanes of the calling warp, all of which are active.
struct WarpLanes {
  __device__ uint32_t index() const { return threadIdx.x % kWarp; }
  __device__ uint32_t count() const { return kWarp; }

  __device__ Largest Max(Largest largest) const {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
      Largest other;
      other.value = __shfl_xor_sync(~0u, largest.value, distance);
      other.index = __shfl_xor_sync(~0u, largest.index, distance);
      if (largest.IsBelow(other)) largest = other;
    }
    return largest;
  }

  // Lanes add the same pairs in a different order, which gives the same bits.
  template <typename T>
  __device__ T Sum(T value) const {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
      value += __shfl_xor_sync(~0u, value, distance);
    }
    return value;
  }
};

// Calls row(lanes, example) with a warp for each example.
template <typename Row>
__device__ void ForEachRow(uint32_t count, RowLoss* losses, Row row) {
  const WarpLanes lanes;
  const unsigned warps = blockDim.x / kWarp;
  for (uint32_t example = blockIdx.x * warps + threadIdx.x / kWarp; example < count;
       example += gridDim.x * warps) {
    const RowLoss loss = row(lanes, example);
    if (lanes.index() == 0) losses[example] = loss;
  }
}

__global__ void SoftmaxKernel(uint32_t count, uint32_t classes, const float* logits,
                              const uint32_t* labels, float share, RowLoss* losses,
                              float* gradient) {
  ForEachRow(count, losses, [=](const WarpLanes& lanes, uint32_t example) {
    const size_t row = size_t{example} * classes;
    return SoftmaxRow(lanes, logits + row, classes, labels[example], share,
                      gradient == nullptr ? nullptr : gradient + row);
  });
}

__global__ void SquaredErrorKernel(uint32_t count, uint32_t outputs, const float* values,
                                   const float* targets, float share, RowLoss* losses,
                                   float* gradient) {
  ForEachRow(count, losses, [=](const WarpLanes& lanes, uint32_t example) {
    const size_t row = size_t{example} * outputs;
    return SquaredErrorRow(lanes, values + row, targets + row, outputs, share,
                           gradient == nullptr ? nullptr : gradient + row);
  });
}

// Runs in one block, because a batch has few examples.
__global__ void SumKernel(uint32_t count, const RowLoss* losses, PassOutputs* totals) {
  RowLoss sum;
  for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
    sum.loss += losses[i].loss;
    sum.correct += losses[i].correct;
  }
  const double loss = BlockSum(sum.loss);
  const uint32_t correct = BlockSum(sum.correct);
  if (threadIdx.x != 0) return;
  totals->loss_sum = loss;
  totals->correct = correct;
}

unsigned BlocksForRows(uint32_t count) { return BlocksFor(size_t{count} * kWarp); }

}  // namespace

absl::Status SoftmaxCrossEntropy(cudaStream_t stream, const LossShape& shape, const float* logits,
                                 const uint32_t* labels, RowLoss* losses, float* gradient) {
  const float share = 1.0f / static_cast<float>(shape.of);
  return Launch("SoftmaxCrossEntropy", stream, BlocksForRows(shape.count), kThreads, SoftmaxKernel,
                shape.count, shape.outputs, logits, labels, share, losses, gradient);
}

absl::Status MeanSquaredError(cudaStream_t stream, const LossShape& shape, const float* values,
                              const float* targets, RowLoss* losses, float* gradient) {
  const float share = 2.0f / static_cast<float>(size_t{shape.of} * shape.outputs);
  return Launch("MeanSquaredError", stream, BlocksForRows(shape.count), kThreads,
                SquaredErrorKernel, shape.count, shape.outputs, values, targets, share, losses,
                gradient);
}

absl::Status SumLosses(cudaStream_t stream, uint32_t count, const RowLoss* losses,
                       PassOutputs* totals) {
  return Launch("SumLosses", stream, 1, kThreads, SumKernel, count, losses, totals);
}

}  // namespace slipstream::cuda
