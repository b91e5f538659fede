#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_LAUNCH_STATUS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_LAUNCH_STATUS_H_

#include <string_view>

#include "absl/status/status.h"

namespace slipstream::cuda {

/// Returns whether this thread's last kernel launch succeeded; the codes are those of
/// cuda_status.h.
absl::Status LaunchStatus(std::string_view kernel);

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_LAUNCH_STATUS_H_
