#ifndef SLIPSTREAM_TESTS_GPU_GPU_H_
#define SLIPSTREAM_TESTS_GPU_GPU_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cuda_device.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// The first GPU. If `device` is null, the test is to be skipped, and `missing` says why.
struct Gpu {
  Gpu() : Gpu(NewCudaDevice(0)) {}
  explicit Gpu(absl::StatusOr<std::unique_ptr<Device>> opened) {
    if (opened.ok()) {
      device = *std::move(opened);
    } else {
      missing = std::string(opened.status().message());
    }
  }

  std::unique_ptr<Device> device;
  std::string missing;
};

/// Returns the first `size` GPUs as one device, or null if there are fewer. Fails if they cannot be
/// used together.
inline Gpu GroupOf(uint32_t size) {
  const absl::StatusOr<std::vector<std::string>> names = CudaDeviceNames();
  if (!names.ok()) return Gpu(names.status());
  if (names->size() < size) {
    return Gpu(absl::NotFoundError(std::to_string(names->size()) + " GPUs here"));
  }
  std::vector<uint32_t> indices(size);
  std::iota(indices.begin(), indices.end(), 0);
  Gpu gpu(NewCudaDeviceGroup(indices));
  EXPECT_NE(gpu.device, nullptr) << gpu.missing;
  return gpu;
}

}  // namespace slipstream

/// Skips the test if there is no GPU. For a test's body, or the SetUp of a fixture, with a member
/// `gpu_`.
#define PS_SKIP_WITHOUT_GPU() \
  if (gpu_.device == nullptr) GTEST_SKIP() << gpu_.missing

#endif  // SLIPSTREAM_TESTS_GPU_GPU_H_
