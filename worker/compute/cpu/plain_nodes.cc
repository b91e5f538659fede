#include "worker/compute/cpu/plain_nodes.h"

#include <algorithm>
#include <span>

#include "worker/compute/cpu/plain_image.h"
#include "worker/compute/cpu/plain_lrn.h"
#include "worker/compute/cpu/plain_vector.h"

namespace slipstream {

void PlainDenseNode::Forward(const Pass& pass, const float* input, float* output) {
  plain::DenseForward(shape_, pass.count, input, pass.weights + parameters_.weight,
                      pass.weights + parameters_.bias, output);
}

void PlainDenseNode::Backward(const Pass& pass, const float* input, const float*,
                              float* output_gradient, float* input_gradient) {
  plain::DenseParameterGradients(shape_, pass.count, input, output_gradient,
                                 pass.gradients + parameters_.weight,
                                 pass.gradients + parameters_.bias);
  pass.GradientReady(parameters_.range());
  if (input_gradient == nullptr) return;
  plain::DenseInputGradient(shape_, pass.count, pass.weights + parameters_.weight, output_gradient,
                            input_gradient);
}

void PlainConv2dNode::Forward(const Pass& pass, const float* input, float* output) {
  plain::Conv2dForward(shape_, pass.count, input, pass.weights + parameters_.weight,
                       pass.weights + parameters_.bias, output);
}

void PlainConv2dNode::Backward(const Pass& pass, const float* input, const float*,
                               float* output_gradient, float* input_gradient) {
  plain::Conv2dParameterGradients(shape_, pass.count, input, output_gradient,
                                  pass.gradients + parameters_.weight,
                                  pass.gradients + parameters_.bias);
  pass.GradientReady(parameters_.range());
  if (input_gradient == nullptr) return;
  plain::Conv2dInputGradient(shape_, pass.count, pass.weights + parameters_.weight, output_gradient,
                             input_gradient);
}

void PlainPoolNode::Forward(const Pass& pass, const float* input, float* output) {
  plain::PoolForward(shape_, pass.count, input, output);
}

void PlainPoolNode::Backward(const Pass& pass, const float* input, const float*,
                             float* output_gradient, float* input_gradient) {
  if (input_gradient == nullptr) return;
  plain::PoolInputGradient(shape_, pass.count, input, output_gradient, input_gradient);
}

void LrnNode::Forward(const Pass& pass, const float* input, float* output) {
  plain::LrnForward(shape_, pass.count, input, output);
}

void LrnNode::Backward(const Pass& pass, const float* input, const float*, float* output_gradient,
                       float* input_gradient) {
  if (input_gradient == nullptr) return;
  plain::LrnInputGradient(shape_, pass.count, input, output_gradient, input_gradient);
}

void PlainActivationNode::Forward(const Pass& pass, const float* input, float* output) {
  const size_t size = pass.count * elements_;
  if (activation_ == Activation::kRelu) plain::Relu({input, size}, {output, size});
  if (activation_ == Activation::kTanh) plain::Tanh({input, size}, {output, size});
  if (activation_ == Activation::kNone) std::copy_n(input, size, output);
}

void PlainActivationNode::Backward(const Pass& pass, const float*, const float* output,
                                   float* output_gradient, float* input_gradient) {
  if (input_gradient == nullptr) return;
  const size_t size = pass.count * elements_;
  const std::span<const float> outputs(output, size);
  const std::span<const float> gradients(output_gradient, size);
  const std::span<float> result(input_gradient, size);
  if (activation_ == Activation::kRelu) plain::ReluInputGradient(outputs, gradients, result);
  if (activation_ == Activation::kTanh) plain::TanhInputGradient(outputs, gradients, result);
  if (activation_ == Activation::kNone) std::copy_n(output_gradient, size, input_gradient);
}

void DropoutNode::Forward(const Pass& pass, const float* input, float* output) {
  const size_t size = pass.count * elements_;
  if (!pass.training) {
    std::copy_n(input, size, output);
    return;
  }
  Dropout({seed_, pass.batch_index, layer_}, rate_, {input, size}, {output, size});
}

void DropoutNode::Backward(const Pass& pass, const float*, const float*, float* output_gradient,
                           float* input_gradient) {
  if (input_gradient == nullptr) return;
  const size_t size = pass.count * elements_;
  Dropout({seed_, pass.batch_index, layer_}, rate_, {output_gradient, size},
          {input_gradient, size});
}

}  // namespace slipstream
