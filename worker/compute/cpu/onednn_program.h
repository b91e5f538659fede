#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_PROGRAM_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>
#include <vector>

#include "worker/compute/cpu/image_block.h"
#include "worker/compute/cpu/node.h"

namespace slipstream {

/// A run of convolutions and pools as oneDNN primitives for one batch size.
///
/// Activations stay in the blocked layouts that oneDNN prefers from block to block; on plain ones
/// it would fall back to kernels three times slower. Weights are plain in the arena and reordered
/// in each pass, which costs little beside the convolutions.
///
/// Built, and run, under a OneThreadScope: some primitives are made for the number of threads.
/// Throws dnnl::error.
///
/// Not thread-safe: owned by one section.
class OneDnnProgram {
 public:
  struct Options {
    uint32_t count = 0;
    bool trains = true;
    bool wants_input_gradient = true;
  };

  OneDnnProgram(const dnnl::engine& engine, const std::vector<ImageBlock>& blocks,
                const Options& options);

  void Forward(dnnl::stream& stream, const Pass& pass, const float* input, float* output);
  void Backward(dnnl::stream& stream, const Pass& pass, float* output_gradient,
                float* input_gradient);

 private:
  struct Call {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  /// Calls after which the gradients of a range, if any, are final.
  struct Stage {
    std::vector<Call> calls;
    std::optional<ParameterRange> ready;
  };

  /// A memory whose values lie in an arena.
  struct Bound {
    dnnl::memory memory;
    size_t offset = 0;
  };

  /// What backward needs of a block's forward.
  struct ConvForward {
    dnnl::convolution_forward::primitive_desc description;
    dnnl::memory source;
    dnnl::memory weight;  // Plain.
    dnnl::memory result;
  };
  struct PoolForward {
    dnnl::pooling_forward::primitive_desc description;
    dnnl::memory source;
    dnnl::memory result;
    std::optional<dnnl::memory> winners;
  };

  dnnl::memory AddForward(const ConvBlock& block, const dnnl::memory& source);
  dnnl::memory AddForward(const PoolBlock& block, const dnnl::memory& source);

  // Each takes the gradient of a block's output and returns that of its input, if wanted.
  std::optional<dnnl::memory> AddBackward(const ConvBlock& block, const ConvForward& forward,
                                          dnnl::memory gradient, bool wants_source_gradient);
  std::optional<dnnl::memory> AddBackward(const PoolBlock& block, const PoolForward& forward,
                                          dnnl::memory gradient, bool wants_source_gradient);
  void AddWeightGradient(const ConvBlock& block, const ConvForward& forward,
                         const dnnl::memory& gradient);
  void AddBackwards(const std::vector<ImageBlock>& blocks, const dnnl::memory& result,
                    bool wants_input_gradient);

  // Undoes an activation in place.
  void AddActivationBackward(Activation activation, const dnnl::memory& result,
                             const dnnl::memory& gradient, Stage& stage);

  /// `from` in the layout `to`, by a reorder if it is in another.
  dnnl::memory Converted(std::vector<Call>& calls, const dnnl::memory& from,
                         const dnnl::memory::desc& to);
  Bound& Bind(std::vector<Bound>& arena, const dnnl::memory::desc& description, size_t offset);
  dnnl::memory::dims Images(const ExampleShape& shape) const;

  // Constant after construction, but for the values they point to.
  const dnnl::engine engine_;
  const uint32_t count_;
  std::vector<std::variant<ConvForward, PoolForward>> forwards_;
  std::vector<Bound> weights_;
  std::vector<Bound> gradients_;
  dnnl::memory input_;
  dnnl::memory output_;
  dnnl::memory output_gradient_;
  dnnl::memory input_gradient_;
  std::vector<Call> forward_;
  std::vector<Stage> backward_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_PROGRAM_H_
