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

/// What was once enqueued on the compute streams of a plan's devices, ready to be launched again as
/// a whole, at the price of one launch for each device. Addresses and sizes are those of the
/// capture.
class StreamGraph {
 public:
  /// Captures what `enqueue` puts on the compute streams, and on others that these pull in and join
  /// again; nothing of it runs. `enqueue` must not allocate or wait. Other threads may use other
  /// streams meanwhile. The contexts must outlive the graph.
  static absl::StatusOr<StreamGraph> Capture(const std::vector<const DeviceContext*>& contexts,
                                             const std::function<absl::Status()>& enqueue);

  /// Enqueues it on the same streams; after an error perhaps on some of them.
  absl::Status Launch() const;

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  using Executable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;

  /// What one device does of it.
  struct Part {
    const DeviceContext* context = nullptr;
    Executable graph;
  };

  static absl::StatusOr<Executable> EndCapture(const DeviceContext& context);

  std::vector<Part> parts_;
};

}  // namespace slipstream::cuda

#endif  // SLIPSTREAM_WORKER_COMPUTE_CUDA_STREAM_GRAPH_H_
