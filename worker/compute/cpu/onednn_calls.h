#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_CALLS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_CALLS_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

namespace slipstream {

/// Primitives with what they read and write, in the order in which they run. Made and run under a
/// OneThreadScope: some are made for the number of threads. Throws dnnl::error.
class OneDnnCalls {
 public:
  using Arguments = std::unordered_map<int, dnnl::memory>;

  void Add(const dnnl::primitive& primitive, Arguments arguments) {
    calls_.push_back({primitive, std::move(arguments)});
  }

  void AddReorder(const dnnl::memory& from, const dnnl::memory& to) {
    Add(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  /// `from` in the layout and type `to`, by a reorder if it is in another.
  dnnl::memory Converted(const dnnl::memory& from, const dnnl::memory::desc& to) {
    if (from.get_desc() == to) return from;
    const dnnl::memory converted(to, from.get_engine());
    AddReorder(from, converted);
    return converted;
  }

  /// Returns when all have run.
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
