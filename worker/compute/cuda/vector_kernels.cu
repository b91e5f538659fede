#include <algorithm>

#include "worker/compute/cuda/divisor.h"
#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/cuda/vector_kernels.h"
#include "worker/compute/cuda/vector_math.h"

namespace slipstream::cuda {
namespace {

template <typename Index>
__global__ void AddBiasKernel(Activation activation, size_t size, Divisor channels, Divisor plane,
                              const float* bias, float* values) {
  ForEach(size, [=](size_t i) {
    const Index of_plane = plane.Of(static_cast<Index>(i));
    const Index channel = of_plane - channels.Of(of_plane) * channels.value();
    values[i] = Activated(activation, values[i] + bias[channel]);
  });
}

__global__ void ActivateKernel(Activation activation, size_t size, const float* input,
                               float* output) {
  ForEach(size, [=](size_t i) { output[i] = Activated(activation, input[i]); });
}

__global__ void ActivationInputGradientKernel(Activation activation, size_t size,
                                              const float* output, const float* output_gradient,
                                              float* input_gradient) {
  ForEach(size, [=](size_t i) {
    input_gradient[i] = ActivationGradient(activation, output[i], output_gradient[i]);
  });
}

// The blocks of random words that the elements [begin, begin + size) use.
struct DrawnBlocks {
  size_t first;
  size_t count;

  static DrawnBlocks Of(size_t begin, size_t size) {
    constexpr uint32_t kElements = DropoutDraws::kBlockElements;
    const size_t first = begin / kElements;
    return {first, (begin + size + kElements - 1) / kElements - first};
  }
};

__global__ void DropoutKernel(DropoutDraws draws, const PassInputs* inputs, DrawnBlocks blocks,
                              size_t begin, size_t size, const float* input, float* output) {
  constexpr uint32_t kElements = DropoutDraws::kBlockElements;
  ForEach(blocks.count, [=](size_t i) {
    const size_t block = blocks.first + i;
    const Philox::Block words = draws.BlockAt(inputs->batch_index, block);
    for (uint32_t word = 0; word < kElements; ++word) {
      const size_t at = block * kElements + word - begin;  // Wraps beyond the end if before begin.
      if (at < size) output[at] = draws.Apply(words[word], input[at]);
    }
  });
}

// A block takes as many columns as a warp has lanes, so that it reads whole cache lines. Each of
// its warps takes every kRows-th row, and their sums are added in the order of warps.
constexpr unsigned kRows = 32;

__global__ void ColumnSumsKernel(size_t rows, uint32_t columns, const float* values, float* sums) {
  __shared__ float partial[kRows][kWarp];
  for (size_t first = size_t{blockIdx.x} * kWarp; first < columns;
       first += size_t{gridDim.x} * kWarp) {
    const size_t column = first + threadIdx.x;
    float sum = 0;
    if (column < columns) {
      for (size_t row = threadIdx.y; row < rows; row += kRows)
        sum += values[row * columns + column];
    }
    partial[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
      for (unsigned row = 1; row < kRows; ++row) sum += partial[row][threadIdx.x];
      sums[column] = sum;
    }
    __syncthreads();
  }
}

// Each block sums some rows of one channel: its warps take rows in turn, and their lanes take the
// values of a plane, so that a warp reads whole cache lines.
constexpr unsigned kWarps = kThreads / kWarp;

__global__ void ChannelSumsKernel(size_t rows, uint32_t plane, const float* values,
                                  float* partial) {
  const unsigned channel = blockIdx.x, channels = gridDim.x;
  const unsigned part = blockIdx.y, parts = gridDim.y;
  float sum = 0;
  for (size_t row = size_t{part} * kWarps + threadIdx.x / kWarp; row < rows;
       row += size_t{parts} * kWarps) {
    const float* const here = values + (row * channels + channel) * plane;
    for (uint32_t i = threadIdx.x % kWarp; i < plane; i += kWarp) sum += here[i];
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) partial[size_t{part} * channels + channel] = sum;
}

__global__ void ToBf16Kernel(size_t size, const float* values, __nv_bfloat16* rounded) {
  ForEach(size, [=](size_t i) { rounded[i] = __float2bfloat16_rn(values[i]); });
}

__global__ void RaiseKernel(const PassInputs* inputs, volatile uint32_t* flag) {
  __threadfence_system();
  *flag = inputs->pass;
}

}  // namespace

absl::Status AddBias(cudaStream_t stream, Activation activation, size_t rows, uint32_t channels,
                     uint32_t plane, const float* bias, float* values) {
  const size_t size = rows * channels * plane;
  return Launch("AddBias", stream, BlocksFor(size), kThreads,
                IsNarrow(size) ? AddBiasKernel<uint32_t> : AddBiasKernel<size_t>, activation, size,
                Divisor(channels), Divisor(plane), bias, values);
}

absl::Status Activate(cudaStream_t stream, Activation activation, size_t size, const float* input,
                      float* output) {
  return Launch("Activate", stream, BlocksFor(size), kThreads, ActivateKernel, activation, size,
                input, output);
}

absl::Status ActivationInputGradient(cudaStream_t stream, Activation activation, size_t size,
                                     const float* output, const float* output_gradient,
                                     float* input_gradient) {
  return Launch("ActivationInputGradient", stream, BlocksFor(size), kThreads,
                ActivationInputGradientKernel, activation, size, output, output_gradient,
                input_gradient);
}

absl::Status Dropout(cudaStream_t stream, const DropoutDraws& draws, const PassInputs* inputs,
                     size_t begin, size_t size, const float* input, float* output) {
  const DrawnBlocks blocks = DrawnBlocks::Of(begin, size);
  return Launch("Dropout", stream, BlocksFor(blocks.count), kThreads, DropoutKernel, draws, inputs,
                blocks, begin, size, input, output);
}

absl::Status ColumnSums(cudaStream_t stream, size_t rows, uint32_t columns, const float* values,
                        float* sums) {
  return Launch("ColumnSums", stream, BlocksFor(columns, kWarp), dim3(kWarp, kRows),
                ColumnSumsKernel, rows, columns, values, sums);
}

absl::Status ChannelSums(cudaStream_t stream, size_t rows, uint32_t channels, uint32_t plane,
                         const float* values, float* partial, float* sums) {
  // Few channels alone would leave most of a GPU idle.
  const size_t parts_of_rows = (rows + kWarps - 1) / kWarps;
  const auto parts = static_cast<unsigned>(
      std::clamp<size_t>(kChannelSumsBlocks / channels, 1, std::max<size_t>(parts_of_rows, 1)));
  const absl::Status launched = Launch("ChannelSums", stream, dim3(channels, parts), kThreads,
                                       ChannelSumsKernel, rows, plane, values, partial);
  if (!launched.ok()) return launched;
  return ColumnSums(stream, parts, channels, partial, sums);
}

absl::Status ToBf16(cudaStream_t stream, size_t size, const float* values, __nv_bfloat16* rounded) {
  return Launch("ToBf16", stream, BlocksFor(size), kThreads, ToBf16Kernel, size, values, rounded);
}

absl::Status Raise(cudaStream_t stream, const PassInputs* inputs, uint32_t* flag) {
  return Launch("Raise", stream, 1, 1, RaiseKernel, inputs, flag);
}

}  // namespace slipstream::cuda
