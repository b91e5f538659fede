#include <cstdint>

#include "worker/compute/cuda/launch.cuh"
#include "worker/compute/cuda/pool_kernels.h"
#include "worker/compute/cuda/pool_math.h"

namespace slipstream::cuda {
namespace {

/// The properties of a pool that are known when its kernel is compiled: loops over windows are then
/// unrolled, and divisions by the stride become shifts.
template <PoolLayer::Kind kKind, uint32_t kKernel, uint32_t kStride>
struct KnownPool {
  static bool Fits(const PoolShape& shape) {
    return shape.kind == kKind && shape.kernel == kKernel && shape.stride == kStride;
  }

  __device__ static PoolShape Of(PoolShape shape) {
    shape.kind = kKind;
    shape.kernel = kKernel;
    shape.stride = kStride;
    return shape;
  }
};

struct AnyPool {
  __device__ static PoolShape Of(const PoolShape& shape) { return shape; }
};

template <typename Pool, typename Index>
__global__ void PoolForwardKernel(PoolShape shape, PlaneGrid outputs, size_t size,
                                  const float* input, float* output, uint32_t* places) {
  const PoolShape pool = Pool::Of(shape);
  ForEach(size, [=](size_t i) {
    output[i] = Pooled(pool, outputs, input, places, static_cast<Index>(i));
  });
}

template <typename Pool, typename Index>
__global__ void PoolInputGradientKernel(PoolShape shape, PlaneGrid inputs, size_t size,
                                        const uint32_t* places, const float* output_gradient,
                                        float* input_gradient) {
  const PoolShape pool = Pool::Of(shape);
  ForEach(size, [=](size_t i) {
    input_gradient[i] =
        PoolInputGradient(pool, inputs, places, output_gradient, static_cast<Index>(i));
  });
}

/// Returns the result of `launch` for the first pool type that fits; the types are those that nets
/// use most.
template <typename Launched>
absl::Status LaunchFor(const PoolShape& shape, Launched launch) {
  using enum PoolLayer::Kind;
  if (KnownPool<kMax, 2, 2>::Fits(shape)) return launch(KnownPool<kMax, 2, 2>());
  if (KnownPool<kMax, 3, 2>::Fits(shape)) return launch(KnownPool<kMax, 3, 2>());
  if (KnownPool<kAverage, 3, 2>::Fits(shape)) return launch(KnownPool<kAverage, 3, 2>());
  return launch(AnyPool());
}

}  // namespace

absl::Status PoolForward(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                         const float* input, float* output, uint32_t* places) {
  const size_t size = count * shape.output.elements();
  return LaunchFor(shape, [&]<typename Pool>(Pool) {
    return Launch(
        "PoolForward", stream, BlocksFor(size), kThreads,
        IsNarrow(size) ? PoolForwardKernel<Pool, uint32_t> : PoolForwardKernel<Pool, size_t>, shape,
        PlaneGrid(shape.output), size, input, output, places);
  });
}

absl::Status PoolInputGradient(cudaStream_t stream, const PoolShape& shape, uint32_t count,
                               const uint32_t* places, const float* output_gradient,
                               float* input_gradient) {
  const size_t size = count * shape.input.elements();
  return LaunchFor(shape, [&]<typename Pool>(Pool) {
    return Launch("PoolInputGradient", stream, BlocksFor(size), kThreads,
                  IsNarrow(size) ? PoolInputGradientKernel<Pool, uint32_t>
                                 : PoolInputGradientKernel<Pool, size_t>,
                  shape, PlaneGrid(shape.input), size, places, output_gradient, input_gradient);
  });
}

}  // namespace slipstream::cuda
