#ifndef SLIPSTREAM_TESTS_SUPPORT_FAKE_DEVICE_H_
#define SLIPSTREAM_TESTS_SUPPORT_FAKE_DEVICE_H_

#include <memory>

#include "worker/compute/plan.h"

namespace slipstream {

/// An accelerator for tests, on a machine that has none. Its plans compute like those of `device`,
/// but behave like a device with memory and a queue of its own:
///  - weights_host() and gradients_host() are staging buffers; a weight reaches the device only by
///    WeightsArrived, a gradient the host only when its range is reported, until when it is NaN;
///  - it has two places for coming batches, whose values it takes at OfferBatch and not later; or
///    keeps examples, if it shall, in a copy;
///  - steps are queued and done in order by the plan's own thread, which also calls the listener;
///    weights are copied by another.
/// So whoever gets equal results from it and from a CPU needs nothing but the interface.
///
/// `device` must outlive it.
std::unique_ptr<Device> NewFakeDevice(Device& device, bool keeps_examples = false);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_FAKE_DEVICE_H_
