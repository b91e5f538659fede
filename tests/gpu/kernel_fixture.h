#ifndef SLIPSTREAM_TESTS_GPU_KERNEL_FIXTURE_H_
#define SLIPSTREAM_TESTS_GPU_KERNEL_FIXTURE_H_

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "tests/gpu/gpu.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/cuda/device_memory.h"

namespace slipstream::cuda {

/// Compares each kernel with its twin on the CPU.
class KernelTest : public testing::Test {
 protected:
  void SetUp() override {
    PS_SKIP_WITHOUT_GPU();
    auto context = DeviceContext::Open(0);
    ASSERT_TRUE(context.ok()) << context.status();
    context_ = *std::move(context);
    ASSERT_TRUE(context_->Enter().ok());
  }

  cudaStream_t stream() const { return context_->compute(); }

  template <typename T>
  static DeviceArray<T> NewArray(size_t size) {
    auto array = DeviceArray<T>::Allocate(size, "a test");
    EXPECT_TRUE(array.ok()) << array.status();
    return *std::move(array);
  }

  // Copies use the kernels' stream, which does not synchronise with the stream of plain cudaMemcpy.
  template <typename T>
  DeviceArray<T> OnDevice(const std::vector<T>& values) const {
    DeviceArray<T> array = NewArray<T>(values.size());
    Copy(array.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
    return array;
  }

  template <typename T>
  std::vector<T> OnHost(const DeviceArray<T>& array) const {
    std::vector<T> values(array.size());
    Copy(values.data(), array.data(), values.size() * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

  void Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) const {
    if (bytes == 0) return;
    EXPECT_EQ(cudaMemcpyAsync(to, from, bytes, kind, stream()), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
  }

  static std::vector<float> Values(size_t size, uint64_t seed) {
    RandomStream random(seed, size);
    std::vector<float> values(size);
    for (float& value : values) value = random.Uniform(-3, 3);
    return values;
  }

  static void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected,
                         float tolerance) {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(actual[i], expected[i], tolerance) << i << " of " << expected.size();
    }
  }

  static std::vector<uint32_t> WordsOf(const std::vector<float>& values) {
    std::vector<uint32_t> words(values.size());
    std::memcpy(words.data(), values.data(), values.size() * sizeof(float));
    return words;
  }

  static std::vector<float> RowsOf(const std::vector<float>& table,
                                   const std::vector<uint32_t>& rows, size_t width) {
    std::vector<float> taken;
    for (const uint32_t row : rows) {
      const auto values = std::span(table).subspan(row * width, width);
      taken.insert(taken.end(), values.begin(), values.end());
    }
    return taken;
  }

  const Gpu gpu_;
  std::unique_ptr<DeviceContext> context_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_TESTS_GPU_KERNEL_FIXTURE_H_
