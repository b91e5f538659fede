#ifndef SLIPSTREAM_WORKER_COMPUTE_OPEN_DEVICE_H_
#define SLIPSTREAM_WORKER_COMPUTE_OPEN_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/settings/device_choice.h"
#include "worker/compute/device_claim.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// Opens the device that a worker computes on. If a GPU was asked for and cannot be used, fails as
/// NewCudaDevice does; with kAuto the reason is logged and the CPU is used instead. If the choice
/// does not say which of several GPUs, `claim` takes the one with the fewest workers of this
/// machine, starting from the worker's id. `claim` must outlive the device.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const DeviceChoice& choice, WorkerId worker,
                                                   DeviceClaim& claim);

/// Returns whether OpenDevice takes the processor for this choice, as far as it is known before.
bool IsProcessor(const DeviceChoice& choice);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_OPEN_DEVICE_H_
