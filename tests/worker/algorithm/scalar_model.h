#ifndef SLIPSTREAM_TESTS_WORKER_ALGORITHM_SCALAR_MODEL_H_
#define SLIPSTREAM_TESTS_WORKER_ALGORITHM_SCALAR_MODEL_H_

#include <array>
#include <cstddef>

#include "worker/algorithm/local_model.h"

namespace slipstream {

/// A local model of one parameter, with plain gradient descent.
class ScalarModel final : public LocalModel {
 public:
  float& operator[](Arena arena) { return values_[static_cast<size_t>(arena)]; }

  void Step(double learning_rate) override {
    (*this)[Arena::kWeights] -= static_cast<float>(learning_rate) * (*this)[Arena::kGradient];
  }

  void CombineWithin(ParameterRange /*range*/, Arena out, float a, Arena x, float b,
                     Arena y) override {
    (*this)[out] = a * (*this)[x] + b * (*this)[y];
  }
  size_t parameters() const override { return 1; }

 private:
  std::array<float, 4> values_ = {};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_ALGORITHM_SCALAR_MODEL_H_
