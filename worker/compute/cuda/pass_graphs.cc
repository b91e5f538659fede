#include "worker/compute/cuda/pass_graphs.h"

#include <cstddef>
#include <utility>

#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/loss_kernels.h"
#include "worker/compute/cuda/vector_kernels.h"

namespace slipstream::cuda {
namespace {

/// Enqueues the parts of one pass.
class Enqueuer {
 public:
  Enqueuer(const PassParts& parts, uint32_t count, bool training)
      : parts_(parts), memory_(parts.memory), stream_(parts.context.compute()) {
    pass_.count = count;
    pass_.training = training;
    pass_.inputs = reinterpret_cast<const PassInputs*>(memory_.batch.data());
    pass_.weights = memory_.weights.data();
    pass_.workspace = memory_.workspace.data();
    if (!training) return;
    pass_.gradients = memory_.gradients.data();
    pass_.gradient_enqueued = [this](ParameterRange range) { return Download(range); };
  }

  absl::Status Forward(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      PS_RETURN_IF_ERROR(
          parts_.nodes[i].node->Forward(pass_, InputOf(i), memory_.outputs[i].data()));
    }
    return absl::OkStatus();
  }

  absl::Status Loss() {
    PS_RETURN_IF_ERROR(LossOfExamples());
    PS_RETURN_IF_ERROR(
        SumLosses(stream_, pass_.count, memory_.losses.data(), memory_.totals.data()));
    return Raise(stream_, pass_.inputs, memory_.flags.data());
  }

  absl::Status Backward() {
    float* output_gradient = memory_.output_gradients[0].data();
    float* input_gradient = memory_.output_gradients[1].data();
    const size_t first = FirstWithParameters();
    for (size_t i = parts_.nodes.size(); i-- > first;) {
      PS_RETURN_IF_ERROR(parts_.nodes[i].node->Backward(pass_, InputOf(i),
                                                        memory_.outputs[i].data(), output_gradient,
                                                        i == first ? nullptr : input_gradient));
      std::swap(output_gradient, input_gradient);
    }
    // What was pulled into a graph has to be joined before it ends.
    return ranges_.empty() ? absl::OkStatus()
                           : parts_.context.Order(parts_.context.download(), stream_);
  }

  std::vector<ParameterRange> TakeRanges() { return std::exchange(ranges_, {}); }

 private:
  const float* InputOf(size_t node) const {
    if (node > 0) return memory_.outputs[node - 1].data();
    return reinterpret_cast<const float*>(memory_.batch.data() + parts_.block.examples);
  }

  // Nobody asks for the gradients of what comes before it.
  size_t FirstWithParameters() const {
    size_t first = 0;
    while (first < parts_.nodes.size() && parts_.nodes[first].parameters.size() == 0) ++first;
    return first;
  }

  absl::Status LossOfExamples() {
    const float* outputs = memory_.outputs.back().data();
    const std::byte* answers = memory_.batch.data() + parts_.block.answers;
    float* gradient = pass_.training ? memory_.output_gradients[0].data() : nullptr;
    if (parts_.net.loss == ModelSpec::Loss::kCrossEntropy) {
      return SoftmaxCrossEntropy(stream_, pass_.count, parts_.net.outputs, outputs,
                                 reinterpret_cast<const uint32_t*>(answers), memory_.losses.data(),
                                 gradient);
    }
    return MeanSquaredError(stream_, pass_.count, parts_.net.outputs, outputs,
                            reinterpret_cast<const float*>(answers), memory_.losses.data(),
                            gradient);
  }

  absl::Status Download(ParameterRange range) {
    const cudaStream_t download = parts_.context.download();
    PS_RETURN_IF_ERROR(parts_.context.Order(stream_, download));
    absl::Status status;
    parts_.map.ForEachPart(range, [&](size_t host, size_t device, size_t size) {
      status.Update(PS_CUDA_STATUS(
          cudaMemcpyAsync(memory_.gradients_host.data() + host, memory_.gradients.data() + device,
                          size * sizeof(float), cudaMemcpyDeviceToHost, download)));
    });
    PS_RETURN_IF_ERROR(status);
    ranges_.push_back(range);
    return Raise(download, pass_.inputs, memory_.flags.data() + ranges_.size());
  }

  const PassParts& parts_;
  const PlanMemory& memory_;
  const cudaStream_t stream_;

  CudaPass pass_;
  std::vector<ParameterRange> ranges_;
};

/// Nodes from one that has parameters up to the next one; the first from the beginning.
struct Stretch {
  size_t begin = 0;
  size_t end = 0;
  ParameterRange reads;
};

std::vector<Stretch> StretchesOf(const std::vector<PlacedNode>& nodes) {
  std::vector<Stretch> stretches = {{}};
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].parameters.size() > 0) {
      if (stretches.back().reads.size() > 0) stretches.push_back({i, i, {}});
      stretches.back().reads = nodes[i].parameters;
    }
    stretches.back().end = i + 1;
  }
  return stretches;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PassGraphs>> PassGraphs::Capture(const PassParts& parts,
                                                                uint32_t count, bool training) {
  const cudaStream_t stream = parts.context.compute();
  for (const PlacedNode& node : parts.nodes) PS_RETURN_IF_ERROR(node.node->Prepare(count));
  std::unique_ptr<PassGraphs> graphs(new PassGraphs);
  Enqueuer enqueuer(parts, count, training);
  const auto whole = [&]() -> absl::Status {
    PS_RETURN_IF_ERROR(enqueuer.Forward(0, parts.nodes.size()));
    PS_RETURN_IF_ERROR(enqueuer.Loss());
    return training ? enqueuer.Backward() : absl::OkStatus();
  };
  PS_RETURN_IF_ERROR(Keep(graphs->whole_, StreamGraph::Capture(stream, whole)));
  graphs->ranges_ = enqueuer.TakeRanges();
  if (!training) return graphs;
  for (const Stretch& stretch : StretchesOf(parts.nodes)) {
    absl::StatusOr<StreamGraph> graph =
        StreamGraph::Capture(stream, [&] { return enqueuer.Forward(stretch.begin, stretch.end); });
    if (!graph.ok()) return graph.status();
    graphs->forward_.push_back({stretch.reads, *std::move(graph)});
  }
  const auto rest = [&]() -> absl::Status {
    PS_RETURN_IF_ERROR(enqueuer.Loss());
    return enqueuer.Backward();
  };
  PS_RETURN_IF_ERROR(Keep(graphs->rest_, StreamGraph::Capture(stream, rest)));
  return graphs;
}

}  // namespace slipstream::cuda
