#include "worker/compute/cuda/pass_enqueuer.h"

#include <utility>

#include "worker/compute/cuda/batch_part.h"
#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/loss_kernels.h"
#include "worker/compute/cuda/vector_kernels.h"

namespace slipstream::cuda {

PassEnqueuer::PassEnqueuer(const PassParts& parts, uint32_t count, bool training)
    : parts_(parts), count_(count) {
  for (size_t i = 0; i < parts.members.size(); ++i) {
    const PlanMember& member = parts.members[i];
    const BatchPart part = BatchPart::Of(count, i, parts.members.size());
    Lane& lane = lanes_.emplace_back();
    lane.member = &member;
    lane.pass.first_example = part.begin;
    lane.pass.count = part.count;
    lane.pass.training = training;
    lane.pass.inputs = reinterpret_cast<const PassInputs*>(member.memory.batch.data());
    lane.pass.weights = member.memory.weights.data();
    lane.pass.workspace = member.memory.workspace.data();
    lane.pass.workspace_bytes = member.memory.workspace.size();
    if (!training) continue;
    lane.pass.gradients = member.memory.gradients.data();
    // Gradients are sent in parallel with the rest of the backward pass.
    lane.pass.gradients_enqueued = [context = member.context.get()] {
      return context->Order(context->compute(), context->download());
    };
  }
}

absl::Status PassEnqueuer::Forward(size_t begin, size_t end) {
  for (const Lane& lane : lanes_) {
    if (lane.pass.count == 0) continue;
    PS_RETURN_IF_ERROR(lane.member->context->Enter());
    for (size_t i = begin; i < end; ++i) {
      PS_RETURN_IF_ERROR(lane.member->nodes[i].node->Forward(
          lane.pass, InputOf(lane, i), lane.member->memory.outputs[i].data()));
    }
  }
  return absl::OkStatus();
}

absl::Status PassEnqueuer::Loss() {
  for (const Lane& lane : lanes_) {
    const PlanMemory& memory = lane.member->memory;
    const DeviceContext& context = *lane.member->context;
    PS_RETURN_IF_ERROR(context.Enter());
    if (lane.pass.count > 0) PS_RETURN_IF_ERROR(LossOfExamples(lane));
    // The backward pass does not wait for the sums.
    const cudaStream_t stream = lane.pass.training ? context.download() : context.compute();
    if (lane.pass.training) PS_RETURN_IF_ERROR(context.Order(context.compute(), stream));
    PS_RETURN_IF_ERROR(
        SumLosses(stream, lane.pass.count, memory.losses.data(), memory.totals.data()));
    PS_RETURN_IF_ERROR(Raise(stream, lane.pass.inputs, memory.flags.data()));
  }
  return absl::OkStatus();
}

absl::Status PassEnqueuer::LossOfExamples(const Lane& lane) const {
  const PlanMemory& memory = lane.member->memory;
  const cudaStream_t stream = lane.member->context->compute();
  const float* outputs = memory.outputs.back().data();
  const std::byte* answers = memory.batch.data() + parts_.block.answers;
  const LossShape shape = {lane.pass.count, parts_.net.outputs, count_};
  float* gradient = lane.pass.training ? memory.output_gradients[0].data() : nullptr;
  if (parts_.net.loss == ModelSpec::Loss::kCrossEntropy) {
    return SoftmaxCrossEntropy(stream, shape, outputs, reinterpret_cast<const uint32_t*>(answers),
                               memory.losses.data(), gradient);
  }
  return MeanSquaredError(stream, shape, outputs, reinterpret_cast<const float*>(answers),
                          memory.losses.data(), gradient);
}

absl::Status PassEnqueuer::Backward() {
  for (Lane& lane : lanes_) {
    lane.output_gradient = lane.member->memory.output_gradients[0].data();
    lane.input_gradient = lane.member->memory.output_gradients[1].data();
  }
  const size_t first = FirstWithParameters();
  for (size_t i = nodes(); i-- > first;) {
    for (Lane& lane : lanes_) PS_RETURN_IF_ERROR(Backward(lane, i, i > first));
    const ParameterRange range = NodeAt(i).parameters;
    if (range.size() == 0) continue;
    PS_RETURN_IF_ERROR(EndRange(range));
  }
  // A stream that was pulled into a graph has to be joined before the graph ends.
  for (const Lane& lane : lanes_) {
    const DeviceContext& context = *lane.member->context;
    PS_RETURN_IF_ERROR(context.Enter());
    PS_RETURN_IF_ERROR(context.Order(context.download(), context.compute()));
  }
  return absl::OkStatus();
}

absl::Status PassEnqueuer::Backward(Lane& lane, size_t node, bool wants_input_gradient) {
  PS_RETURN_IF_ERROR(lane.member->context->Enter());
  if (lane.pass.count == 0) return ZeroGradients(lane, NodeAt(node).parameters);
  PS_RETURN_IF_ERROR(lane.member->nodes[node].node->Backward(
      lane.pass, InputOf(lane, node), lane.member->memory.outputs[node].data(),
      lane.output_gradient, wants_input_gradient ? lane.input_gradient : nullptr));
  std::swap(lane.output_gradient, lane.input_gradient);
  return absl::OkStatus();
}

absl::Status PassEnqueuer::ZeroGradients(const Lane& lane, ParameterRange range) const {
  if (range.size() == 0) return absl::OkStatus();
  const cudaStream_t stream = lane.member->context->compute();
  absl::Status status;
  parts_.map.ForEachPart(range, [&](size_t /*host*/, size_t device, size_t size) {
    status.Update(PS_CUDA_STATUS(
        cudaMemsetAsync(lane.pass.gradients + device, 0, size * sizeof(float), stream)));
  });
  PS_RETURN_IF_ERROR(status);
  return lane.pass.gradients_enqueued();
}

absl::Status PassEnqueuer::EndRange(ParameterRange range) {
  ranges_.push_back(range);
  for (const Lane& lane : lanes_) {
    const PlanMember& member = *lane.member;
    PS_RETURN_IF_ERROR(member.context->Enter());
    if (!parts_.keeps_gradients) {
      PS_RETURN_IF_ERROR(member.Download(parts_.map, range, parts_.host));
    }
    PS_RETURN_IF_ERROR(Raise(member.context->download(), lane.pass.inputs,
                             member.memory.flags.data() + ranges_.size()));
  }
  return absl::OkStatus();
}

std::vector<ParameterRange> PassEnqueuer::TakeRanges() { return std::exchange(ranges_, {}); }

const float* PassEnqueuer::InputOf(const Lane& lane, size_t node) const {
  const PlanMemory& memory = lane.member->memory;
  if (node > 0) return memory.outputs[node - 1].data();
  return reinterpret_cast<const float*>(memory.batch.data() + parts_.block.examples);
}

// Returns the first node with parameters: gradients of earlier nodes are not needed.
size_t PassEnqueuer::FirstWithParameters() const {
  size_t first = 0;
  while (first < nodes() && NodeAt(first).parameters.size() == 0) ++first;
  return first;
}

}  // namespace slipstream::cuda
