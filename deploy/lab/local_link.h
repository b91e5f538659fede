#ifndef SLIPSTREAM_DEPLOY_LAB_LOCAL_LINK_H_
#define SLIPSTREAM_DEPLOY_LAB_LOCAL_LINK_H_

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace slipstream {

/// The costs of exchanging values between two threads of this machine.
struct LocalLink {
  /// Half of the time from a small message to its answer.
  double latency = 0;
  double bytes_per_second = 0;

  /// The cost of a small message to its sender.
  double message = 0;
};

/// Measures a way through shared memory: messages over a local socket that wake the other side, and
/// copies of `bytes` bytes. Fails with RESOURCE_EXHAUSTED if there is no socket to be had.
absl::StatusOr<LocalLink> MeasureSharedMemory(size_t bytes, absl::Duration budget);

/// Measures a connection over TCP. Fails in the same way.
absl::StatusOr<LocalLink> MeasureLoopback(absl::Duration budget);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_LOCAL_LINK_H_
