#ifndef SLIPSTREAM_SERVER_SERVICE_UPDATE_RANGE_H_
#define SLIPSTREAM_SERVER_SERVICE_UPDATE_RANGE_H_

#include <cstddef>
#include <memory>

#include "common/kernels/update.h"
#include "common/run/run_spec.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// What one update of a shard reads and writes, all of one size. Shared with whoever made the
/// buffers and with other updates of the same version.
struct UpdateBuffers {
  Weights from;
  std::shared_ptr<FloatBuffer> to;

  // Null without momentum.
  std::shared_ptr<const FloatBuffer> velocity;
  std::shared_ptr<FloatBuffer> velocity_next;
};

/// Makes `count` values of the next version, from position `begin` on. The gradient's sum and last
/// part are those of this range alone. Ranges that do not overlap may be made by several threads.
void UpdateRange(const OptimizerSpec& optimizer, const UpdateBuffers& buffers, size_t begin,
                 size_t count, const CombinedGradient& gradient, float rate);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_UPDATE_RANGE_H_
