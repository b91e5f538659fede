#include "worker/compute/cuda/plan_memory.h"

#include <algorithm>
#include <utility>

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

constexpr size_t kAlignment = 256;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <typename Array>
absl::Status Take(Array& array, size_t size, const char* what) {
  return Keep(array, Array::Allocate(size, what));
}

absl::Status TakeForTraining(PlanMemory& memory, const NetSizes& net, const ArenaMap& map,
                             size_t largest_output) {
  PS_RETURN_IF_ERROR(Take(memory.gradients, map.size(), "gradients"));
  PS_RETURN_IF_ERROR(Take(memory.gradients_host, net.parameters, "gradients"));
  for (DeviceArray<float>& gradients : memory.output_gradients) {
    PS_RETURN_IF_ERROR(Take(gradients, largest_output, "the gradients of activations"));
  }
  return absl::OkStatus();
}

}  // namespace

BatchBlock BatchBlock::For(const NetSizes& net, uint32_t batch_size_max) {
  const size_t answer_bytes =
      net.loss == ModelSpec::Loss::kCrossEntropy ? sizeof(uint32_t) : net.outputs * sizeof(float);
  BatchBlock block;
  block.answers = Aligned(sizeof(PassInputs));
  block.examples = Aligned(block.answers + batch_size_max * answer_bytes);
  block.example_bytes = net.inputs * sizeof(float);
  block.end = block.BytesOf(batch_size_max);
  return block;
}

absl::StatusOr<PlanMemory> PlanMemory::Allocate(const NetSizes& net, const ArenaMap& map,
                                                const std::vector<PlacedNode>& nodes,
                                                const PlanOptions& options) {
  PlanMemory memory;
  const size_t count = options.batch_size_max;
  const size_t batch_bytes = BatchBlock::For(net, options.batch_size_max).end;
  PS_RETURN_IF_ERROR(Take(memory.weights, map.size(), "weights"));
  PS_RETURN_IF_ERROR(Take(memory.weights_host, net.parameters, "weights"));
  size_t largest_output = 0;
  for (const PlacedNode& node : nodes) {
    PS_RETURN_IF_ERROR(Take(memory.outputs.emplace_back(), count * node.outputs, "activations"));
    largest_output = std::max(largest_output, count * node.outputs);
  }
  PS_RETURN_IF_ERROR(Take(memory.batch, batch_bytes, "a batch"));
  PS_RETURN_IF_ERROR(Take(memory.batch_host, batch_bytes, "a batch"));
  PS_RETURN_IF_ERROR(Take(memory.losses, count, "losses"));
  PS_RETURN_IF_ERROR(Take(memory.workspace, kWorkspaceBytes, "workspace"));
  PS_RETURN_IF_ERROR(Take(memory.totals, 1, "totals"));
  PS_RETURN_IF_ERROR(Take(memory.flags, 1 + nodes.size(), "flags"));
  if (options.trains) PS_RETURN_IF_ERROR(TakeForTraining(memory, net, map, largest_output));
  return memory;
}

}  // namespace slipstream::cuda
