#include "worker/compute/cpu/dense_node.h"

#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>

#include "common/base/check.h"
#include "worker/compute/cpu/dense_vectors.h"

namespace slipstream {
namespace {

struct Matrix {
  const float* values = nullptr;
  size_t row = 0;  // Stride from one row to the next, in values.
  bool transposed = false;
};

// Computes result[rows, columns] = left[rows, inner] · right[inner, columns]; all are row-major.
void Multiply(size_t rows, size_t columns, size_t inner, const Matrix& left, const Matrix& right,
              float* result) {
  const auto flag = [](const Matrix& matrix) { return matrix.transposed ? 'T' : 'N'; };
  const auto size = [](size_t value) { return static_cast<dnnl_dim_t>(value); };
  const dnnl_status_t status =
      dnnl_sgemm(flag(left), flag(right), size(rows), size(columns), size(inner), 1.0f, left.values,
                 size(left.row), right.values, size(right.row), 0.0f, result, size(columns));
  PS_CHECK(status == dnnl_success);  // It fails only on bad sizes.
}

}  // namespace

void DenseNode::Forward(const Pass& pass, const float* input, float* output) {
  const float* weight = pass.weights + parameters_.weight;
  const float* bias = pass.weights + parameters_.bias;
  Multiply(pass.count, shape_.units, shape_.inputs, {input, shape_.inputs},
           {weight, shape_.inputs, true}, output);
  ActivateRows({output, size_t{pass.count} * shape_.units}, {bias, shape_.units}, activation_);
}

void DenseNode::Backward(const Pass& pass, const float* input, const float* output,
                         float* output_gradient, float* input_gradient) {
  const size_t outputs = size_t{pass.count} * shape_.units;
  UndoActivation({output, outputs}, {output_gradient, outputs}, activation_);
  SumRows({output_gradient, outputs}, {pass.gradients + parameters_.bias, shape_.units});
  Multiply(shape_.units, shape_.inputs, pass.count, {output_gradient, shape_.units, true},
           {input, shape_.inputs}, pass.gradients + parameters_.weight);
  pass.GradientReady(parameters_.range());

  if (input_gradient == nullptr) return;
  Multiply(pass.count, shape_.inputs, shape_.units, {output_gradient, shape_.units},
           {pass.weights + parameters_.weight, shape_.inputs}, input_gradient);
}

}  // namespace slipstream
