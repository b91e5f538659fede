#include "worker/compute/cuda/stream_graph.h"

#include "worker/compute/cuda/cuda_status.h"

namespace slipstream::cuda {

absl::StatusOr<StreamGraph> StreamGraph::Capture(cudaStream_t stream,
                                                 const std::function<absl::Status()>& enqueue) {
  // Relaxed: other threads go on with uploads and allocations, and what a library does when it is
  // first called, such as loading kernels, is done at once.
  PS_RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  const absl::Status enqueued = enqueue();
  cudaGraph_t graph = nullptr;
  const absl::Status captured = PS_CUDA_STATUS(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  absl::Status made = enqueued.ok() ? captured : enqueued;
  if (made.ok()) made = PS_CUDA_STATUS(cudaGraphInstantiate(&executable, graph, 0));
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  if (!made.ok()) return made;
  return StreamGraph(executable);
}

absl::Status StreamGraph::Launch(cudaStream_t stream) const {
  return PS_CUDA_STATUS(cudaGraphLaunch(graph_.get(), stream));
}

}  // namespace slipstream::cuda
