#ifndef SLIPSTREAM_SERVER_DATA_PLANE_UPDATE_RANGE_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_UPDATE_RANGE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "common/kernels/fold.h"
#include "common/kernels/rules/tensor_rules.h"
#include "common/kernels/rules/update_rule.h"
#include "common/layout/tensor_layout.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// The buffers that one update of a shard reads and writes, all of one size. They are shared with
/// their maker and with other updates of the same version.
struct UpdateBuffers {
  Weights from;
  std::shared_ptr<FloatBuffer> to;

  /// The optimizer's state: the first RuleRow::state_arrays of these. The others are null.
  std::array<std::shared_ptr<const FloatBuffer>, kStateArraysMax> state = {};
  std::array<std::shared_ptr<FloatBuffer>, kStateArraysMax> state_next = {};

  /// The rule's scalars for the version that is made.
  RuleScalars scalars = {};
};

/// Makes `count` values of the next version, from position `begin` on. The gradient's sum and last
/// part are those of this range alone. Ranges that do not overlap may be made by several threads.
void UpdateRange(const TensorRules& rules, const UpdateBuffers& buffers, size_t begin, size_t count,
                 const CombinedGradient& gradient, const StepSize& step);

/// Makes the weights out of what UpdateRange has left, for a rule that measures tensors. `tensors`
/// are the tensors' ranges. REQUIRES: all of the version was made.
void FinishTensors(const TensorRules& rules, const UpdateBuffers& buffers,
                   std::span<const ParameterRange> tensors, const StepSize& step);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_UPDATE_RANGE_H_
