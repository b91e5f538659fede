#include "worker/compute/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "common/log/log.h"
#include "common/model/net_shapes.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cuda/cuda_libraries.h"
#include "worker/compute/cuda/cuda_plan.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/net_layers.h"

namespace slipstream {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(cuda::PlanDevices devices) : devices_(std::move(devices)) {}

  absl::StatusOr<std::unique_ptr<Plan>> Prepare(const ModelSpec& model,
                                                const PlanOptions& options) override {
    if (options.batch_size_max == 0) {
      return absl::InvalidArgumentError("a plan needs at least one example");
    }
    const std::variant<NetShapes, ShapeError> inferred = InferShapes(model);
    if (const auto* error = std::get_if<ShapeError>(&inferred)) {
      return absl::InvalidArgumentError(error->Text());
    }
    const NetShapes& shapes = std::get<NetShapes>(inferred);
    return cuda::CudaPlan::New(options.trains ? devices_ : ForEvaluation(),
                               NetLayers(model, shapes), NetSizes::Of(model, shapes), options);
  }

 private:
  /// Evaluation needs one device, and leaves the others to training.
  cuda::PlanDevices ForEvaluation() const {
    return {.indices = {devices_.indices.front()}, .launching = devices_.launching};
  }

  const cuda::PlanDevices devices_;
};

/// Opens the GPU, and logs which one it is if it can be used.
absl::Status Try(int index) {
  const auto opened = cuda::DeviceContext::Open(index);
  if (!opened.ok()) return opened.status();
  cudaDeviceProp properties = {};
  PS_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, index));
  LogInfo("computing on a GPU",
          {{"index", index},
           {"name", properties.name},
           {"memory_bytes", properties.totalGlobalMem},
           {"capability", fmt::format("{}.{}", properties.major, properties.minor)}});
  return absl::OkStatus();
}

}  // namespace

bool HasCuda() { return true; }

absl::StatusOr<std::vector<std::string>> CudaDeviceNames() {
  const absl::StatusOr<int> devices = cuda::DeviceContext::Count();
  if (!devices.ok()) return devices.status();
  std::vector<std::string> names;
  for (int index = 0; index < *devices; ++index) {
    cudaDeviceProp properties = {};
    PS_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, index));
    const auto* const uuid = reinterpret_cast<const unsigned char*>(properties.uuid.bytes);
    names.push_back(
        fmt::format("{:02x}", fmt::join(std::span(uuid, sizeof(properties.uuid.bytes)), "")));
  }
  return names;
}

absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(uint32_t index) {
  const auto device = static_cast<int>(index);
  PS_RETURN_IF_ERROR(Try(device));
  return std::make_unique<CudaDevice>(cuda::PlanDevices{.indices = {device}});
}

absl::StatusOr<std::unique_ptr<Device>> NewCudaDeviceGroup(const std::vector<uint32_t>& indices) {
  if (indices.empty()) return absl::InvalidArgumentError("a group of GPUs needs at least one");
  cuda::PlanDevices devices;
  devices.indices.assign(indices.begin(), indices.end());
  devices.are_grouped = true;
  devices.launching = std::make_shared<Mutex>();
  for (const int device : devices.indices) {
    if (std::ranges::count(devices.indices, device) > 1) {
      return absl::InvalidArgumentError("GPU " + std::to_string(device) +
                                        " is named twice: set compute.device to different ones");
    }
    PS_RETURN_IF_ERROR(Try(device));
  }
  PS_RETURN_IF_ERROR(cuda::Nccl::Load().status());
  return std::make_unique<CudaDevice>(std::move(devices));
}

}  // namespace slipstream
