#ifndef SLIPSTREAM_TESTS_SUPPORT_FAKE_DEVICE_H_
#define SLIPSTREAM_TESTS_SUPPORT_FAKE_DEVICE_H_

#include <memory>

#include "worker/compute/plan.h"

namespace slipstream {

/// An accelerator for tests on a machine that has none. Its plans compute like those of `device`,
/// but behave like a device with its own memory and queue:
/// - weights_host() and gradients_host() are staging buffers. A weight reaches the device only by
///   WeightsArrived; a gradient reaches the host only when its range is reported, and is NaN
///   before.
/// - It has two places for coming batches and copies their values at OfferBatch, not later. With
///   `keeps_examples` it computes from its own copy of the examples instead.
/// - Steps are queued and run in order on the plan's own thread, which also calls the listener.
///   Another thread copies weights.
///
/// A caller that gets the same results from it as from a CPU therefore relies on nothing but the
/// interface.
///
/// `device` must outlive it.
std::unique_ptr<Device> NewFakeDevice(Device& device, bool keeps_examples = false);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_FAKE_DEVICE_H_
