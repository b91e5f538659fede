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

/// Consecutive convolutions and pools as oneDNN primitives for one batch size.
///
/// Activations stay in oneDNN's preferred blocked layouts from block to block; on plain layouts it
/// would fall back to kernels that are three times slower. Weights are plain in the arena and are
/// reordered in each pass, which costs little compared to the convolutions.
///
/// Must be built and run under a OneThreadScope. Throws dnnl::error.
///
/// Not thread-safe: owned by one section.
class OneDnnProgram {
 public:
  struct Options {
    uint32_t count = 0;
    bool trains = true;
    bool wants_input_gradient = true;

    /// The type of activations, of their gradients, and of the weights that they are multiplied
    /// with. Sums and the gradients of weights are fp32.
    dnnl::memory::data_type operand_type = dnnl::memory::data_type::f32;
  };

  OneDnnProgram(const dnnl::engine& engine, const std::vector<ImageBlock>& blocks,
                const Options& options);

  void Forward(dnnl::stream& stream, const Pass& pass, const float* input, float* output);
  void Backward(dnnl::stream& stream, const Pass& pass, float* output_gradient,
                float* input_gradient);

 private:
  /// Calls, and the range whose gradients, if any, are final after them.
  struct Stage {
    OneDnnCalls calls;
    std::optional<ParameterRange> ready;
  };

  /// A memory whose values lie in an arena.
  struct Bound {
    dnnl::memory memory;
    size_t offset = 0;
  };

  /// The parts of a block's forward pass that the backward pass needs.
  struct ConvForward {
    dnnl::convolution_forward::primitive_desc description;
    dnnl::memory source;
    dnnl::memory weight;  // In the plain layout.
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

  // Each adds the calls that turn the gradient of a block's output into that of its input, and
  // returns the latter if it is wanted.
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

  /// Describes an operand in the layout that its primitive chooses.
  dnnl::memory::desc Any(const dnnl::memory::dims& dims) const;
  dnnl::memory::dims Images(const ExampleShape& shape) const;

  // Constant after construction, except the values they point to.
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
