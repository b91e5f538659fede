#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_STREAM_GRAPH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_STREAM_GRAPH_H_

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace slipstream::cuda {

/// What was once enqueued on a stream, ready to be launched again as a whole, at the price of one
/// launch. Addresses and sizes are those of the capture.
class StreamGraph {
 public:
  /// Captures what `enqueue` puts on `stream`, and on others that it pulls in and joins again;
  /// nothing of it runs. `enqueue` must not allocate or wait. Other threads may use other streams
  /// meanwhile.
  static absl::StatusOr<StreamGraph> Capture(cudaStream_t stream,
                                             const std::function<absl::Status()>& enqueue);

  absl::Status Launch(cudaStream_t stream) const;

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };

  explicit StreamGraph(cudaGraphExec_t graph) : graph_(graph) {}

  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> graph_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_STREAM_GRAPH_H_
