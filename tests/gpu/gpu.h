#ifndef SLIPSTREAM_TESTS_GPU_GPU_H_
#define SLIPSTREAM_TESTS_GPU_GPU_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cuda_device.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// The first GPU, or null: then the test is to be skipped, with the reason.
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

}  // namespace slipstream

/// In a test's body or SetUp, of a fixture with a member `gpu_`.
#define PS_SKIP_WITHOUT_GPU() \
  if (gpu_.device == nullptr) GTEST_SKIP() << gpu_.missing

#endif  // SLIPSTREAM_TESTS_GPU_GPU_H_
