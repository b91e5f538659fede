#include "worker/compute/cpu/bf16_dense_node.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "worker/compute/cpu/dense_vectors.h"
#include "worker/compute/cpu/onednn_calls.h"

namespace slipstream {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Type = memory::data_type;

// oneDNN's memory objects have no const; values that are only read stay unchanged.
void Point(const memory& to, const float* values) {
  to.set_data_handle(const_cast<float*>(values));
}

}  // namespace

/// The matrix products for one number of examples. All matrices are row-major: converting the
/// weights to oneDNN's preferred layout would take longer than the product.
class Bf16DenseNode::Program {
 public:
  Program(const Bf16DenseNode& node, uint32_t count)
      : engine_(node.engine_),
        inputs_(Matrix(count, node.shape_.inputs)),
        outputs_(Matrix(count, node.shape_.units)),
        weights_(Matrix(node.shape_.units, node.shape_.inputs)) {
    AddProduct(forward_, inputs_.rounded, Transposed(weights_.rounded), outputs_.values,
               {&inputs_, &weights_});
    if (!node.trains_) return;
    AddProduct(weight_gradient_, Transposed(outputs_.rounded), inputs_.rounded, weights_.values,
               {&outputs_});
    if (!node.wants_input_gradient_) return;
    AddProduct(input_gradient_, outputs_.rounded, weights_.rounded, inputs_.values, {});
  }

  void Forward(dnnl::stream& stream, const float* input, const float* weight, float* output) {
    Point(inputs_.values, input);
    Point(weights_.values, weight);
    Point(outputs_.values, output);
    forward_.Run(stream);
  }

  /// Call after Forward: it multiplies Forward's input.
  void WeightGradient(dnnl::stream& stream, const float* output_gradient, float* result) {
    Point(outputs_.values, output_gradient);
    Point(weights_.values, result);
    weight_gradient_.Run(stream);
  }

  /// Call after WeightGradient: it multiplies that call's output gradient with the weights of
  /// Forward.
  void InputGradient(dnnl::stream& stream, float* result) {
    Point(inputs_.values, result);
    input_gradient_.Run(stream);
  }

 private:
  /// Values that lie elsewhere, and their bf16 copies.
  struct Operand {
    memory values;
    memory rounded;
  };

  Operand Matrix(memory::dim rows, memory::dim columns) const {
    return {memory({{rows, columns}, Type::f32, Tag::ab}, engine_, nullptr),
            memory({{rows, columns}, Type::bf16, Tag::ab}, engine_)};
  }

  memory Transposed(const memory& matrix) const {
    const memory::dims dims = matrix.get_desc().dims();
    return memory({{dims[1], dims[0]}, Type::bf16, Tag::ba}, engine_, matrix.get_data_handle());
  }

  /// Adds result = left · right, after rounding the operands in `to_round`.
  void AddProduct(OneDnnCalls& calls, const memory& left, const memory& right, const memory& result,
                  const std::vector<const Operand*>& to_round) {
    for (const Operand* operand : to_round) calls.AddReorder(operand->values, operand->rounded);
    const dnnl::matmul::primitive_desc description(
        {left.get_desc(), right.get_desc(), result.get_desc()}, engine_);
    calls.Add(dnnl::matmul(description),
              {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}});
  }

  // Constant after construction, except the values they point to. An operand and its gradient share
  // memory, because they are never needed at once.
  const dnnl::engine engine_;
  const Operand inputs_;
  const Operand outputs_;
  const Operand weights_;
  OneDnnCalls forward_;
  OneDnnCalls weight_gradient_;
  OneDnnCalls input_gradient_;
};

Bf16DenseNode::Bf16DenseNode(const DenseShape& shape, const LayerParameters& parameters,
                             Activation activation, bool trains, bool wants_input_gradient)
    : shape_(shape),
      parameters_(parameters),
      activation_(activation),
      trains_(trains),
      wants_input_gradient_(wants_input_gradient) {}

Bf16DenseNode::~Bf16DenseNode() = default;

void Bf16DenseNode::Prepare(uint32_t count) {
  programs_.Prepare(count, [&] { return std::make_unique<Program>(*this, count); });
}

void Bf16DenseNode::Forward(const Pass& pass, const float* input, float* output) {
  programs_.For(pass.count).Forward(stream_, input, pass.weights + parameters_.weight, output);
  const float* bias = pass.weights + parameters_.bias;
  ActivateRows({output, size_t{pass.count} * shape_.units}, {bias, shape_.units}, activation_);
}

void Bf16DenseNode::Backward(const Pass& pass, const float*, const float* output,
                             float* output_gradient, float* input_gradient) {
  PS_CHECK((input_gradient != nullptr) == wants_input_gradient_);
  const size_t outputs = size_t{pass.count} * shape_.units;
  UndoActivation({output, outputs}, {output_gradient, outputs}, activation_);
  SumRows({output_gradient, outputs}, {pass.gradients + parameters_.bias, shape_.units});
  Program& program = programs_.For(pass.count);
  program.WeightGradient(stream_, output_gradient, pass.gradients + parameters_.weight);
  pass.GradientReady(parameters_.range());
  if (input_gradient != nullptr) program.InputGradient(stream_, input_gradient);
}

}  // namespace slipstream
