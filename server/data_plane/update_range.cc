#include "server/data_plane/update_range.h"

#include <span>

namespace slipstream {

void UpdateRange(const TensorRules& rules, const UpdateBuffers& buffers, size_t begin, size_t count,
                 const CombinedGradient& gradient, const StepSize& step) {
  UpdateArrays arrays = {.weights_in = buffers.from->values().subspan(begin, count),
                         .weights_out = buffers.to->values().subspan(begin, count)};
  for (size_t i = 0; i < arrays.states.size(); ++i) {
    if (buffers.state[i] == nullptr) continue;
    arrays.states[i] = {buffers.state[i]->values().subspan(begin, count),
                        buffers.state_next[i]->values().subspan(begin, count)};
  }
  rules.Update(begin, arrays, gradient, step, buffers.scalars,
               StoresFor(buffers.to->values().size_bytes()));
}

void FinishTensors(const TensorRules& rules, const UpdateBuffers& buffers,
                   std::span<const ParameterRange> tensors, const StepSize& step) {
  for (const ParameterRange& tensor : tensors) {
    rules.FinishTensor(tensor.begin, buffers.from->values().subspan(tensor.begin, tensor.size()),
                       buffers.to->values().subspan(tensor.begin, tensor.size()), step);
  }
}

}  // namespace slipstream
