#ifndef SLIPSTREAM_TESTS_GPU_SIMULATED_STREAMS_H_
#define SLIPSTREAM_TESTS_GPU_SIMULATED_STREAMS_H_

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace slipstream::simulated {

/// Streams, events and graphs with the rules of CUDA's runtime. Work on one stream is done in
/// order; there is no other order, except by events. A stream that is captured collects its work in
/// a graph, and so do streams that wait for it. An operation that would bring uncaptured work into
/// a graph is an error. A stream or an event belongs to the device that was current when it was
/// made. All functions may be called from any thread.

/// Enqueues `run`, which must hold everything it needs by value. The stream's device must be the
/// current one. CUDA requires that only of kernels; here it is required of copies, too.
cudaError_t Enqueue(cudaStream_t stream, std::function<void()> run);

/// Lets the streams that wait for others at a meeting go on without them.
class Abortion {
 public:
  void Abort();
  bool is_aborted() const { return is_aborted_; }

 private:
  std::atomic<bool> is_aborted_ = false;
};

/// Enqueues work that streams of several devices do together: when all of them have come to it,
/// `run` runs once, and all go on. It cannot be captured, although NCCL's sums can: if one thread
/// launched the graphs of several devices, they might wait for one another for ever.
cudaError_t EnqueueTogether(const std::vector<cudaStream_t>& streams, std::function<void()> run,
                            std::shared_ptr<const Abortion> abortion);

int DeviceOf(cudaStream_t stream);

/// Returns whether work on the stream becomes part of a graph.
bool IsCaptured(cudaStream_t stream);

/// If set, NCCL reports to every caller that a sum has failed.
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
