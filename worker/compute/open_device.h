#ifndef SLIPSTREAM_WORKER_COMPUTE_OPEN_DEVICE_H_
#define SLIPSTREAM_WORKER_COMPUTE_OPEN_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/run/device_choice.h"
#include "worker/compute/device_claim.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// What a worker computes on. A GPU that was asked for and cannot be used is an error
/// (NewCudaDevice has which); with kAuto the reason is logged and the processor takes its place.
/// Where the choice does not say which of several GPUs, `claim` takes one: what others of this
/// machine have taken least, from the worker's id on. It must outlive the device.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const DeviceChoice& choice, WorkerId worker,
                                                   DeviceClaim& claim);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_OPEN_DEVICE_H_
