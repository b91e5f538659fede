#ifndef SLIPSTREAM_WORKER_COMPUTE_CUDA_STREAM_GRAPH_H_
#define SLIPSTREAM_WORKER_COMPUTE_CUDA_STREAM_GRAPH_H_

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/device_context.h"

namespace slipstream::cuda {

/// A recording of work that was enqueued on the compute streams of a plan's devices. It can be
/// launched again as a whole, at the cost of one launch per device. Addresses and sizes are those
/// of the capture.
class StreamGraph {
 public:
  /// Captures the work that `enqueue` puts on the compute streams, and on others that these pull in
  /// and join again; the work does not run. `enqueue` must not allocate or wait. Other threads may
  /// use other streams in the meantime. The contexts must outlive the graph.
  static absl::StatusOr<StreamGraph> Capture(const std::vector<const DeviceContext*>& contexts,
                                             const std::function<absl::Status()>& enqueue);

  /// Enqueues the work on the same streams; after an error perhaps only on some of them.
  absl::Status Launch() const;

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  using Executable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;

  /// One device's part of the work.
  struct Part {
    const DeviceContext* context = nullptr;
    Executable graph;
  };

  static absl::StatusOr<Executable> EndCapture(const DeviceContext& context);

  std::vector<Part> parts_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_STREAM_GRAPH_H_
