#ifndef SLIPSTREAM_DEPLOY_LAB_COMPUTE_TIMES_H_
#define SLIPSTREAM_DEPLOY_LAB_COMPUTE_TIMES_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/philox.h"
#include "deploy/lab/world_spec.h"

namespace slipstream {

/// Draws how long mini-batches take. Each worker has a stream of its own, so that its times do not
/// depend on what others do.
///
/// Not thread-safe: one owner.
class ComputeTimes {
 public:
  ComputeTimes(const WorldSpec& world, uint32_t workers, uint64_t seed);

  /// Draws the time of the worker's next mini-batch, which has so many examples.
  absl::Duration Next(WorkerId worker, uint32_t examples);

 private:
  struct Worker {
    RandomStream draws;
    double factor = 1;
  };

  const ComputeTimeSpec compute_;
  std::vector<Worker> workers_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_COMPUTE_TIMES_H_
