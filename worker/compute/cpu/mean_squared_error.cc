#include "worker/compute/cpu/mean_squared_error.h"

#include <cstddef>

#include "common/base/check.h"

namespace slipstream {

StepResult MeanSquaredError(std::span<const float> outputs, std::span<const float> targets,
                            std::span<float> outputs_gradient) {
  PS_CHECK(targets.size() == outputs.size());
  PS_CHECK(outputs_gradient.empty() || outputs_gradient.size() == outputs.size());
  double sum = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double difference = static_cast<double>(outputs[i]) - targets[i];
    sum += difference * difference;
  }
  const float share = 2.0f / static_cast<float>(outputs.size());
  for (size_t i = 0; i < outputs_gradient.size(); ++i) {
    outputs_gradient[i] = share * (outputs[i] - targets[i]);
  }
  return {.loss = static_cast<float>(sum / static_cast<double>(outputs.size())),
          .correct = std::nullopt};
}

}  // namespace slipstream
