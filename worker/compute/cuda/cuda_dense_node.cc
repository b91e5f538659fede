#include "worker/compute/cuda/cuda_dense_node.h"

#include <utility>

#include "worker/compute/cuda/cuda_status.h"
#include "worker/compute/cuda/vector_kernels.h"

namespace slipstream::cuda {

absl::StatusOr<std::unique_ptr<CudaNode>> CudaDenseNode::New(const DeviceContext& context,
                                                             const Options& options) {
  std::unique_ptr<CudaDenseNode> node(new CudaDenseNode(context, options));
  if (options.precision == Precision::kBf16) PS_RETURN_IF_ERROR(node->AllocateRounded());
  return node;
}

absl::Status CudaDenseNode::AllocateRounded() {
  const DenseShape& shape = options_.shape;
  const size_t count = options_.batch_size_max;
  const auto allocate = [](DeviceArray<__nv_bfloat16>& array, size_t size) {
    return Keep(array,
                DeviceArray<__nv_bfloat16>::Allocate(size, "a dense layer's rounded operands"));
  };
  PS_RETURN_IF_ERROR(allocate(rounded_input_, count * shape.inputs));
  PS_RETURN_IF_ERROR(allocate(rounded_weight_, size_t{shape.units} * shape.inputs));
  return options_.trains ? allocate(rounded_gradient_, count * shape.units) : absl::OkStatus();
}

absl::Status CudaDenseNode::Prepare(uint32_t count) {
  const DenseShape& shape = options_.shape;
  PS_RETURN_IF_ERROR(PrepareForward(
      {.rows = count, .columns = shape.units, .inner = shape.inputs, .right_is_transposed = true}));
  if (!options_.trains) return absl::OkStatus();
  const auto prepare = [&](std::optional<Matmul>& matmul, const Matmul::Shape& product) {
    return Keep(matmul,
                Matmul::Prepare(context_, product, options_.precision, Matmul::Epilogue::kNone));
  };
  PS_RETURN_IF_ERROR(prepare(
      weight_gradient_,
      {.rows = shape.units, .columns = shape.inputs, .inner = count, .left_is_transposed = true}));
  if (!options_.wants_input_gradient) return absl::OkStatus();
  return prepare(input_gradient_, {.rows = count, .columns = shape.inputs, .inner = shape.units});
}

absl::Status CudaDenseNode::PrepareForward(const Matmul::Shape& shape) {
  epilogue_ = Matmul::Epilogue::kNone;
  if (options_.activation == Activation::kNone) epilogue_ = Matmul::Epilogue::kBias;
  if (options_.activation == Activation::kRelu) epilogue_ = Matmul::Epilogue::kBiasRelu;
  absl::StatusOr<Matmul> fused = Matmul::Prepare(context_, shape, options_.precision, epilogue_);
  if (!absl::IsUnimplemented(fused.status())) return Keep(forward_, std::move(fused));
  epilogue_ = Matmul::Epilogue::kNone;
  return Keep(forward_, Matmul::Prepare(context_, shape, options_.precision, epilogue_));
}

absl::StatusOr<const void*> CudaDenseNode::Operand(
    const float* values, size_t size, const DeviceArray<__nv_bfloat16>& rounded) const {
  if (options_.precision != Precision::kBf16) return values;
  PS_RETURN_IF_ERROR(ToBf16(context_.compute(), size, values, rounded.data()));
  return rounded.data();
}

absl::Status CudaDenseNode::Forward(const CudaPass& pass, const float* input, float* output) {
  const DenseShape& shape = options_.shape;
  const float* bias = pass.weights + options_.parameters.bias;
  const auto left = Operand(input, size_t{pass.count} * shape.inputs, rounded_input_);
  if (!left.ok()) return left.status();
  const auto right = Operand(pass.weights + options_.parameters.weight,
                             size_t{shape.units} * shape.inputs, rounded_weight_);
  if (!right.ok()) return right.status();
  const bool is_fused = epilogue_ != Matmul::Epilogue::kNone;
  PS_RETURN_IF_ERROR(
      forward_->Run(*left, *right, is_fused ? bias : nullptr, pass.workspace, output));
  if (is_fused) return absl::OkStatus();
  return AddBias(context_.compute(), options_.activation, pass.count, shape.units, 1, bias, output);
}

absl::Status CudaDenseNode::Backward(const CudaPass& pass, const float* input, const float* output,
                                     float* output_gradient, float* input_gradient) {
  const DenseShape& shape = options_.shape;
  const size_t outputs = size_t{pass.count} * shape.units;
  if (options_.activation != Activation::kNone) {
    PS_RETURN_IF_ERROR(ActivationInputGradient(context_.compute(), options_.activation, outputs,
                                               output, output_gradient, output_gradient));
  }
  PS_RETURN_IF_ERROR(ColumnSums(context_.compute(), pass.count, shape.units, output_gradient,
                                pass.gradients + options_.parameters.bias));
  const auto gradient = Operand(output_gradient, outputs, rounded_gradient_);
  if (!gradient.ok()) return gradient.status();
  const bool is_rounded = options_.precision == Precision::kBf16;
  const void* const inputs = is_rounded ? static_cast<const void*>(rounded_input_.data())
                                        : static_cast<const void*>(input);
  PS_RETURN_IF_ERROR(weight_gradient_->Run(*gradient, inputs, nullptr, pass.workspace,
                                           pass.gradients + options_.parameters.weight));
  PS_RETURN_IF_ERROR(pass.gradients_enqueued());
  if (input_gradient == nullptr) return absl::OkStatus();
  const float* const weight = pass.weights + options_.parameters.weight;
  const void* const weights = is_rounded ? static_cast<const void*>(rounded_weight_.data())
                                         : static_cast<const void*>(weight);
  return input_gradient_->Run(*gradient, weights, nullptr, pass.workspace, input_gradient);
}

}  // namespace slipstream::cuda
