#include "worker/compute/cuda/cuda_device.h"

#include <spdlog/spdlog.h>

#include <string>
#include <variant>

#include "common/model/net_shapes.h"
#include "worker/compute/batch_check.h"
#include "worker/compute/cuda/cuda_plan.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/device_context.h"
#include "worker/compute/net_layers.h"

namespace slipstream {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : index_(index) {}

  absl::StatusOr<std::unique_ptr<Plan>> Prepare(const ModelSpec& model,
                                                const PlanOptions& options) override {
    if (options.batch_size_max == 0 || options.threads == 0) {
      return absl::InvalidArgumentError("a plan needs at least one example and one thread");
    }
    const std::variant<NetShapes, ShapeError> inferred = InferShapes(model);
    if (const auto* error = std::get_if<ShapeError>(&inferred)) {
      return absl::InvalidArgumentError("layer " + std::to_string(error->layer) + ": " +
                                        error->message);
    }
    const NetShapes& shapes = std::get<NetShapes>(inferred);
    return cuda::CudaPlan::New(index_, NetLayers(model, shapes), NetSizes::Of(model, shapes),
                               options);
  }

 private:
  const int index_;
};

absl::Status TellOf(int index) {
  cudaDeviceProp properties = {};
  PS_RETURN_IF_CUDA_ERROR(cudaGetDeviceProperties(&properties, index));
  spdlog::info("computing on a GPU index={} name=\"{}\" memory_bytes={} capability={}.{}", index,
               properties.name, properties.totalGlobalMem, properties.major, properties.minor);
  return absl::OkStatus();
}

}  // namespace

bool HasCuda() { return true; }

absl::StatusOr<uint32_t> CountCudaDevices() {
  const absl::StatusOr<int> devices = cuda::DeviceContext::Count();
  if (!devices.ok()) return devices.status();
  return static_cast<uint32_t>(*devices);
}

absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(uint32_t index) {
  const auto device = static_cast<int>(index);
  const auto opened = cuda::DeviceContext::Open(device);
  if (!opened.ok()) return opened.status();
  PS_RETURN_IF_ERROR(TellOf(device));
  return std::make_unique<CudaDevice>(device);
}

}  // namespace slipstream
