#include "worker/compute/cpu/dense_vectors.h"

#include <algorithm>
#include <cstddef>

#include "worker/compute/cpu/plain_vector.h"

namespace slipstream {

void ActivateRows(std::span<float> rows, std::span<const float> bias, Activation activation) {
  for (float* row = rows.data(); row != rows.data() + rows.size(); row += bias.size()) {
    if (activation == Activation::kRelu) {
      for (size_t i = 0; i < bias.size(); ++i) row[i] = std::max(row[i] + bias[i], 0.0f);
    } else {
      for (size_t i = 0; i < bias.size(); ++i) row[i] += bias[i];
    }
  }
  if (activation == Activation::kTanh) plain::Tanh(rows, rows);
}

void UndoActivation(std::span<const float> outputs, std::span<float> gradients,
                    Activation activation) {
  if (activation == Activation::kRelu) plain::ReluInputGradient(outputs, gradients, gradients);
  if (activation == Activation::kTanh) plain::TanhInputGradient(outputs, gradients, gradients);
}

void SumRows(std::span<const float> rows, std::span<float> sum) {
  std::fill(sum.begin(), sum.end(), 0.0f);
  for (const float* row = rows.data(); row != rows.data() + rows.size(); row += sum.size()) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += row[i];
  }
}

}  // namespace slipstream
