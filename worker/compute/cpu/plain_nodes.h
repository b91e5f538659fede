#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_NODES_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_NODES_H_

#include <cstddef>

#include "worker/compute/activation.h"
#include "worker/compute/cpu/dropout.h"
#include "worker/compute/cpu/node.h"
#include "worker/compute/layer_shapes.h"

namespace slipstream {

/// Nodes of one layer each, on the plain kernels, for any shape. The fast nodes are tested against
/// them. They keep no values between calls.

class PlainDenseNode final : public Node {
 public:
  PlainDenseNode(const DenseShape& shape, const LayerParameters& parameters)
      : shape_(shape), parameters_(parameters) {}

  void Prepare(uint32_t) override {}
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  const DenseShape shape_;
  const LayerParameters parameters_;
};

class PlainConv2dNode final : public Node {
 public:
  PlainConv2dNode(const Conv2dShape& shape, const LayerParameters& parameters)
      : shape_(shape), parameters_(parameters) {}

  void Prepare(uint32_t) override {}
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  const Conv2dShape shape_;
  const LayerParameters parameters_;
};

class PlainPoolNode final : public Node {
 public:
  explicit PlainPoolNode(const PoolShape& shape) : shape_(shape) {}

  void Prepare(uint32_t) override {}
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  const PoolShape shape_;
};

class LrnNode final : public Node {
 public:
  explicit LrnNode(const LrnShape& shape) : shape_(shape) {}

  void Prepare(uint32_t) override {}
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  const LrnShape shape_;
};

class PlainActivationNode final : public Node {
 public:
  PlainActivationNode(Activation activation, size_t elements)
      : activation_(activation), elements_(elements) {}

  void Prepare(uint32_t) override {}
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  const Activation activation_;
  const size_t elements_;
};

class DropoutNode final : public Node {
 public:
  DropoutNode(uint64_t seed, uint32_t layer, float rate, size_t elements)
      : seed_(seed), layer_(layer), rate_(rate), elements_(elements) {}

  void Prepare(uint32_t) override {}
  void Forward(const Pass& pass, const float* input, float* output) override;
  void Backward(const Pass& pass, const float* input, const float* output, float* output_gradient,
                float* input_gradient) override;

 private:
  const uint64_t seed_;
  const uint32_t layer_;
  const float rate_;
  const size_t elements_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_PLAIN_NODES_H_
