#include "worker/compute/cuda/pass_graphs.h"

#include <cstddef>
#include <utility>

#include "worker/compute/cuda/batch_part.h"
#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

/// The nodes from one with parameters up to the next one; the first stretch starts at the
/// beginning.
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

absl::Status PrepareNodes(const std::vector<PlanMember>& members, uint32_t count) {
  for (size_t i = 0; i < members.size(); ++i) {
    const BatchPart part = BatchPart::Of(count, i, members.size());
    if (part.count == 0) continue;
    PS_RETURN_IF_ERROR(members[i].context->Enter());
    for (const PlacedNode& node : members[i].nodes) {
      PS_RETURN_IF_ERROR(node.node->Prepare(part.count));
    }
  }
  return absl::OkStatus();
}

absl::Status EnqueuePass(PassEnqueuer& enqueuer, size_t nodes, bool training) {
  PS_RETURN_IF_ERROR(enqueuer.Forward(0, nodes));
  PS_RETURN_IF_ERROR(enqueuer.Loss());
  return training ? enqueuer.Backward() : absl::OkStatus();
}

absl::Status ZeroBatch(const PlanMember& member) {
  const DeviceArray<std::byte>& batch = member.memory.batch;
  PS_RETURN_IF_ERROR(member.context->Enter());
  return PS_CUDA_STATUS(cudaMemsetAsync(batch.data(), 0, batch.size(), member.context->compute()));
}

absl::Status RunOnce(PassParts parts, uint32_t count, bool training) {
  for (const PlanMember& member : parts.members) PS_RETURN_IF_ERROR(ZeroBatch(member));
  parts.keeps_gradients = true;  // The host's gradients may be being pushed to shards.
  PassEnqueuer enqueuer(parts, count, training);
  PS_RETURN_IF_ERROR(EnqueuePass(enqueuer, parts.members.front().nodes.size(), training));
  return AwaitAll(parts.members, &DeviceContext::compute);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PassGraphs>> PassGraphs::Capture(const PassParts& parts,
                                                                uint32_t count, bool training) {
  PS_RETURN_IF_ERROR(PrepareNodes(parts.members, count));
  PS_RETURN_IF_ERROR(RunOnce(parts, count, training));
  std::vector<const DeviceContext*> contexts;
  for (const PlanMember& member : parts.members) contexts.push_back(member.context.get());
  const std::vector<PlacedNode>& nodes = parts.members.front().nodes;
  std::unique_ptr<PassGraphs> graphs(new PassGraphs);
  PassEnqueuer enqueuer(parts, count, training);
  const auto whole = [&] { return EnqueuePass(enqueuer, nodes.size(), training); };
  PS_RETURN_IF_ERROR(Keep(graphs->whole_, StreamGraph::Capture(contexts, whole)));
  graphs->ranges_ = enqueuer.TakeRanges();
  if (!training) return graphs;
  for (const Stretch& stretch : StretchesOf(nodes)) {
    absl::StatusOr<StreamGraph> graph = StreamGraph::Capture(
        contexts, [&] { return enqueuer.Forward(stretch.begin, stretch.end); });
    if (!graph.ok()) return graph.status();
    graphs->forward_.push_back({stretch.reads, *std::move(graph)});
  }
  const auto rest = [&]() -> absl::Status {
    PS_RETURN_IF_ERROR(enqueuer.Loss());
    return enqueuer.Backward();
  };
  PS_RETURN_IF_ERROR(Keep(graphs->rest_, StreamGraph::Capture(contexts, rest)));
  return graphs;
}

}  // namespace slipstream::cuda
