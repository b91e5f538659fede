#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_DENSE_NODE_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_DENSE_NODE_H_

#include "worker/compute/activation.h"
#include "worker/compute/cpu/node.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream {

/// Dense layer, bias and activation on oneDNN's sgemm, which reads the plain weights and writes the
/// plain gradients directly in the arenas.
class DenseNode final : public Node {
 public:
  DenseNode(const DenseShape& shape, const LayerParameters& parameters, Activation activation)
      : shape_(shape), parameters_(parameters), activation_(activation) {}

  void Prepare(uint32_t) override {}
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  const DenseShape shape_;
  const LayerParameters parameters_;
  const Activation activation_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_DENSE_NODE_H_
