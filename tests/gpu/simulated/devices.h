#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_DEVICES_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_DEVICES_H_

namespace slipstream::simulated {

/// The number of devices. Each has its own memory, streams and events, and cannot access another's
/// memory.
inline constexpr int kDevices = 3;

/// The device of the calling thread, as set by cudaSetDevice.
inline thread_local int current_device = 0;

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_DEVICES_H_
