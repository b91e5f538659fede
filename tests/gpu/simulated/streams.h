#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_STREAMS_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_STREAMS_H_

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace slipstream::simulated {

/// Streams, events and graphs with the rules of CUDA's runtime: what is enqueued on one stream is
/// done in order, nothing else is, but by events; a stream that is captured collects its work in a
/// graph, and so do those that wait for it; what would bring uncaptured work into a graph is an
/// error. A stream or an event is of the device that was current when it was made. All functions
/// may be called from any thread.

/// Enqueues `run`, which must hold all it needs by value. The stream's device must be the current
/// one, which CUDA asks of kernels alone: to copy on another's stream is no mistake there, but
/// here.
cudaError_t Enqueue(cudaStream_t stream, std::function<void()> run);

/// Lets those that wait for others at a meeting go on without.
class Abortion {
 public:
  void Abort();
  bool is_aborted() const { return is_aborted_; }

 private:
  std::atomic<bool> is_aborted_ = false;
};

/// Enqueues what streams of several devices do together: when all have come to it, `run` is done
/// once, and all go on. It cannot be captured, though NCCL's sums can: launched by one thread in
/// graphs of several devices they may wait for one another for ever.
cudaError_t EnqueueTogether(const std::vector<cudaStream_t>& streams, std::function<void()> run,
                            std::shared_ptr<const Abortion> abortion);

int DeviceOf(cudaStream_t stream);

/// What is enqueued on it becomes part of a graph.
bool IsCaptured(cudaStream_t stream);

/// Whether NCCL says, whoever asks, that a sum has failed.
inline std::atomic<bool> nccl_has_failed = false;

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
