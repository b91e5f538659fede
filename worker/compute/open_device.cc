#include "worker/compute/open_device.h"

#include <string>
#include <vector>

#include "common/log/log.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/compute/cuda/cuda_device.h"

namespace slipstream {
namespace {

absl::StatusOr<std::unique_ptr<Device>> OpenAnyCuda(WorkerId worker, DeviceClaim& claim) {
  const absl::StatusOr<std::vector<std::string>> names = CudaDeviceNames();
  if (!names.ok()) return names.status();
  return NewCudaDevice(static_cast<uint32_t>(claim.Take(*names, Value(worker))));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const DeviceChoice& choice, WorkerId worker,
                                                   DeviceClaim& claim) {
  switch (choice.kind) {
    case DeviceChoice::Kind::kCpu:
      break;
    case DeviceChoice::Kind::kAnyCuda:
      return OpenAnyCuda(worker, claim);
    case DeviceChoice::Kind::kCuda:
      return choice.indices.size() == 1 ? NewCudaDevice(choice.indices.front())
                                        : NewCudaDeviceGroup(choice.indices);
    case DeviceChoice::Kind::kAuto: {
      if (!HasCuda()) break;
      absl::StatusOr<std::unique_ptr<Device>> device = OpenAnyCuda(worker, claim);
      if (device.ok()) return device;
      LogInfo("computing on the processor", {{"reason", device.status().message()}});
      break;
    }
  }
  return NewCpuDevice();
}

bool IsProcessor(const DeviceChoice& choice) {
  using Kind = DeviceChoice::Kind;
  return choice.kind == Kind::kCpu || (choice.kind == Kind::kAuto && !HasCuda());
}

}  // namespace slipstream
