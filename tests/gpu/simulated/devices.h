#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_DEVICES_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_DEVICES_H_

namespace slipstream::simulated {

/// Each with memory, streams and events of its own; nothing of one reaches the memory of another.
inline constexpr int kDevices = 3;

/// What the calling thread's calls are about, as cudaSetDevice said.
inline thread_local int current_device = 0;

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_DEVICES_H_
