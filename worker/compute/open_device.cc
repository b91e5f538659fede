#include "worker/compute/open_device.h"

#include <spdlog/spdlog.h>

#include <string>

#include "worker/compute/cpu/cpu_device.h"
#include "worker/compute/cuda/cuda_device.h"

namespace slipstream {

namespace {

absl::StatusOr<std::unique_ptr<Device>> OpenAnyCuda(WorkerId worker) {
  const absl::StatusOr<uint32_t> devices = CountCudaDevices();
  if (!devices.ok()) return devices.status();
  return NewCudaDevice(Value(worker) % *devices);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const DeviceChoice& choice, WorkerId worker) {
  switch (choice.kind) {
    case DeviceChoice::Kind::kCpu:
      break;
    case DeviceChoice::Kind::kAnyCuda:
      return OpenAnyCuda(worker);
    case DeviceChoice::Kind::kCuda:
      return choice.indices.size() == 1 ? NewCudaDevice(choice.indices.front())
                                        : NewCudaDeviceGroup(choice.indices);
    case DeviceChoice::Kind::kAuto: {
      if (!HasCuda()) break;
      absl::StatusOr<std::unique_ptr<Device>> device = OpenAnyCuda(worker);
      if (device.ok()) return device;
      spdlog::info("computing on the processor reason=\"{}\"",
                   std::string(device.status().message()));
      break;
    }
  }
  return NewCpuDevice();
}

}  // namespace slipstream
