#include "worker/compute/cuda/stream_graph.h"

#include <utility>

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {
namespace {

absl::Status BeginCapture(const DeviceContext& context) {
  PS_RETURN_IF_ERROR(context.Enter());
  // Relaxed mode, because other threads continue uploads and allocations.
  return PS_CUDA_STATUS(cudaStreamBeginCapture(context.compute(), cudaStreamCaptureModeRelaxed));
}

}  // namespace

absl::StatusOr<StreamGraph> StreamGraph::Capture(const std::vector<const DeviceContext*>& contexts,
                                                 const std::function<absl::Status()>& enqueue) {
  StreamGraph made;
  absl::Status status;
  for (const DeviceContext* context : contexts) {
    if (!status.ok()) break;
    status = BeginCapture(*context);
    if (status.ok()) made.parts_.push_back({context, nullptr});
  }
  if (status.ok()) status = enqueue();
  // End the captures also after an error, so that the streams can be used again.
  for (Part& part : made.parts_) status.Update(Keep(part.graph, EndCapture(*part.context)));
  if (!status.ok()) return status;
  return made;
}

absl::StatusOr<StreamGraph::Executable> StreamGraph::EndCapture(const DeviceContext& context) {
  PS_RETURN_IF_ERROR(context.Enter());
  cudaGraph_t graph = nullptr;
  absl::Status status = PS_CUDA_STATUS(cudaStreamEndCapture(context.compute(), &graph));
  cudaGraphExec_t executable = nullptr;
  // Nodes keep the priorities of the captured streams; otherwise all would get that of the stream
  // into which the graph is launched.
  constexpr unsigned long long kFlags = cudaGraphInstantiateFlagUseNodePriority;
  if (status.ok()) status = PS_CUDA_STATUS(cudaGraphInstantiate(&executable, graph, kFlags));
  // Upload now. Otherwise the first launch would do it, while other devices may wait for that
  // launch.
  if (status.ok()) status = PS_CUDA_STATUS(cudaGraphUpload(executable, context.compute()));
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  if (!status.ok()) return status;
  return Executable(executable);
}

absl::Status StreamGraph::Launch() const {
  for (const Part& part : parts_) {
    PS_RETURN_IF_ERROR(part.context->Enter());
    PS_RETURN_IF_CUDA_ERROR(cudaGraphLaunch(part.graph.get(), part.context->compute()));
  }
  return absl::OkStatus();
}

}  // namespace slipstream::cuda
