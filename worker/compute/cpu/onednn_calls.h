#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_CALLS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_CALLS_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

namespace slipstream {

/// oneDNN primitives with their arguments, in the order in which they run. Must be made and run
/// under a OneThreadScope, because some primitives are made for a number of threads. Throws
/// dnnl::error.
class OneDnnCalls {
 public:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  void Add(const dnnl::primitive& primitive, Arguments arguments) {
    calls_.push_back({primitive, std::move(arguments)});
  }

  void AddReorder(const dnnl::memory& from, const dnnl::memory& to) {
    Add(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  /// Returns `from` in the layout and type `to`, by a reorder if it differs.
  dnnl::memory Converted(const dnnl::memory& from, const dnnl::memory::desc& to) {
    if (from.get_desc() == to) return from;
    const dnnl::memory converted(to, from.get_engine());
    AddReorder(from, converted);
    return converted;
  }

  /// Runs all primitives and returns when they are done.
  void Run(dnnl::stream& stream) const {
    for (const Call& call : calls_) call.primitive.execute(stream, call.arguments);
    stream.wait();
  }

 private:
  struct Call {
    dnnl::primitive primitive;
    Arguments arguments;
  };

  std::vector<Call> calls_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_CALLS_H_
