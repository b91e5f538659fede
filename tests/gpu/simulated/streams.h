#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_STREAMS_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_STREAMS_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace slipstream::simulated {

/// Streams, events and graphs with the rules of CUDA's runtime: what is enqueued on one stream is
/// done in order, nothing else is, but by events; a stream that is captured collects its work in a
/// graph, and so do those that wait for it; what would bring uncaptured work into a graph is an
/// error. All functions may be called from any thread.

/// Enqueues `run`, which must hold all it needs by value.
cudaError_t Enqueue(cudaStream_t stream, std::function<void()> run);

cudaError_t NewStream(cudaStream_t* stream);
cudaError_t DeleteStream(cudaStream_t stream);
cudaError_t Synchronize(cudaStream_t stream);
cudaError_t Query(cudaStream_t stream);

cudaError_t NewEvent(cudaEvent_t* event);
cudaError_t DeleteEvent(cudaEvent_t event);
cudaError_t Record(cudaEvent_t event, cudaStream_t stream);
cudaError_t Wait(cudaStream_t stream, cudaEvent_t event);

cudaError_t BeginCapture(cudaStream_t stream);
cudaError_t EndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t DeleteGraph(cudaGraph_t graph);
cudaError_t Instantiate(cudaGraphExec_t* executable, cudaGraph_t graph);
cudaError_t DeleteExecutable(cudaGraphExec_t executable);
cudaError_t Launch(cudaGraphExec_t executable, cudaStream_t stream);

}  // namespace slipstream::simulated

#endif  // SLIPSTREAM_TESTS_GPU_SIMULATED_STREAMS_H_
