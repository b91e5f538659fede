#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_BF16_DENSE_NODE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_BF16_DENSE_NODE_H_

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

#include "worker/compute/activation.h"
#include "worker/compute/batch_programs.h"
#include "worker/compute/cpu/node.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream {

/// Dense layer, bias and activation on oneDNN's products of bf16 matrices, which take half the time
/// of fp32 with AVX-512 BF16 and a quarter with AMX. Weights, activations and gradients are fp32
/// outside the node and are rounded in each pass.
class Bf16DenseNode final : public Node {
 public:
  /// `trains`: Backward will be called. `wants_input_gradient`: it will compute the input's
  /// gradient, too.
  Bf16DenseNode(const DenseShape& shape, const LayerParameters& parameters, Activation activation,
                bool trains, bool wants_input_gradient);
  ~Bf16DenseNode() override;

  void Prepare(uint32_t count) override;
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  class Program;

  // Constant after construction.
  const DenseShape shape_;
  const LayerParameters parameters_;
  const Activation activation_;
  const bool trains_;
  const bool wants_input_gradient_;
  const dnnl::engine engine_{dnnl::engine::kind::cpu, 0};

  dnnl::stream stream_{engine_};
  BatchPrograms<Program> programs_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_BF16_DENSE_NODE_H_
