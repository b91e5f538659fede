#ifndef SLIPSTREAM_SERVER_SERVICE_UPDATE_RANGE_H_
#define SLIPSTREAM_SERVER_SERVICE_UPDATE_RANGE_H_

#include <array>
#include <cstddef>
#include <memory>

#include "common/kernels/update.h"
#include "common/run/run_spec.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

inline constexpr size_t kStateArraysMax = 2;

/// What one update of a shard reads and writes, all of one size. Shared with whoever made the
/// buffers and with other updates of the same version.
struct UpdateBuffers {
  Weights from;
  std::shared_ptr<FloatBuffer> to;

  /// The optimizer's state, OptimizerSpec::state_arrays() of these: momentum's velocity; Adam's
  /// mean and mean square. Null beyond.
  std::array<std::shared_ptr<const FloatBuffer>, kStateArraysMax> state = {};
  std::array<std::shared_ptr<FloatBuffer>, kStateArraysMax> state_next = {};

  /// Of Adam, with this update.
  AdamPowers powers = {};
};

/// Of Adam and AdamW.
AdamRule AdamRuleOf(const OptimizerSpec& optimizer);

/// Makes `count` values of the next version, from position `begin` on. The gradient's sum and last
/// part are those of this range alone. `step_scale` is of Adam's step, see Update::step_scale.
/// Ranges that do not overlap may be made by several threads.
void UpdateRange(const OptimizerSpec& optimizer, const UpdateBuffers& buffers, size_t begin,
                 size_t count, const CombinedGradient& gradient, float rate,
                 float step_scale = 1.0f);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_UPDATE_RANGE_H_
