#include "worker/compute/cpu/losses.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/base/check.h"

namespace slipstream {

StepResult SoftmaxCrossEntropy(std::span<const float> logits, std::span<const uint32_t> labels,
                               uint32_t classes, std::span<float> logits_gradient) {
  PS_CHECK(logits.size() == labels.size() * classes);
  PS_CHECK(logits_gradient.empty() || logits_gradient.size() == logits.size());
  const float share = 1.0f / static_cast<float>(labels.size());
  double loss = 0;
  uint32_t correct = 0;
  for (size_t example = 0; example < labels.size(); ++example) {
    const std::span<const float> row = logits.subspan(example * classes, classes);
    const uint32_t label = labels[example];
    // Subtract the largest logit so that the exponentials do not overflow.
    const auto largest = std::max_element(row.begin(), row.end());
    const bool wants_gradient = !logits_gradient.empty();
    const std::span<float> gradient =
        wants_gradient ? logits_gradient.subspan(example * classes, classes) : logits_gradient;
    float sum = 0;
    for (size_t i = 0; i < classes; ++i) {
      const float exponential = std::exp(row[i] - *largest);
      if (wants_gradient) gradient[i] = exponential;
      sum += exponential;
    }
    loss += std::log(sum) - (row[label] - *largest);
    correct += largest - row.begin() == label;
    if (!wants_gradient) continue;
    for (size_t i = 0; i < classes; ++i) gradient[i] = gradient[i] / sum * share;
    gradient[label] -= share;
  }
  return {.loss = static_cast<float>(loss / static_cast<double>(labels.size())),
          .correct = correct};
}

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
