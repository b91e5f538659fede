#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_PROGRAM_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <variant>
#include <vector>

#include "worker/compute/cpu/image_block.h"
#include "worker/compute/cpu/node.h"
#include "worker/compute/cpu/onednn_calls.h"

namespace slipstream {

/// A run of convolutions and pools as oneDNN primitives for one batch size.
///
/// Activations stay in the blocked layouts that oneDNN prefers from block to block; on plain ones
/// it would fall back to kernels three times slower. Weights are plain in the arena and reordered
/// in each pass, which costs little beside the convolutions.
///
/// Built, and run, under a OneThreadScope. Throws dnnl::error.
///
/// Not thread-safe: owned by one section.
class OneDnnProgram {
 public:
  struct Options {
    uint32_t count = 0;
    bool trains = true;
    bool wants_input_gradient = true;

    /// Of activations, of their gradients and of the weights they are multiplied with; sums and the
    /// gradients of weights are fp32.
    dnnl::memory::data_type operand_type = dnnl::memory::data_type::f32;
  };

  OneDnnProgram(const dnnl::engine& engine, const std::vector<ImageBlock>& blocks,
                const Options& options);

  void Forward(dnnl::stream& stream, const Pass& pass, const float* input, float* output);
  void Backward(dnnl::stream& stream, const Pass& pass, float* output_gradient,
                float* input_gradient);

 private:
  /// Calls after which the gradients of a range, if any, are final.
  struct Stage {
    OneDnnCalls calls;
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

  Bound& Bind(std::vector<Bound>& arena, const dnnl::memory::desc& description, size_t offset);

  /// Of operands, in the layout that their primitive chooses.
  dnnl::memory::desc Any(const dnnl::memory::dims& dims) const;
  dnnl::memory::dims Images(const ExampleShape& shape) const;

  // Constant after construction, but for the values they point to.
  const dnnl::engine engine_;
  const uint32_t count_;
  const dnnl::memory::data_type operand_type_;
  std::vector<std::variant<ConvForward, PoolForward>> forwards_;
  std::vector<Bound> weights_;
  std::vector<Bound> gradients_;
  dnnl::memory input_;
  dnnl::memory output_;
  dnnl::memory output_gradient_;
  dnnl::memory input_gradient_;
  OneDnnCalls forward_;
  std::vector<Stage> backward_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_ONEDNN_PROGRAM_H_
