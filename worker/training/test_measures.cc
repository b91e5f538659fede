#include "worker/training/test_measures.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "common/kernels/finite.h"

namespace slipstream {
namespace {

/// Returns a batch of the test set, whose examples it writes to `values`.
Batch BatchOf(const Dataset& data, size_t first, size_t count, std::vector<float>& values) {
  const size_t inputs = data.shape.elements();
  values.resize(count * inputs);
  data.examples.Read(first * inputs, values);
  Batch batch = {.examples = values};
  if (data.is_labelled()) {
    batch.labels = std::span(data.labels).subspan(first, count);
  } else {
    batch.targets = std::span(data.targets).subspan(first * data.outputs, count * data.outputs);
  }
  return batch;
}

}  // namespace

absl::StatusOr<TestMeasures> MeasureOnTest(Plan& plan, const Dataset& test,
                                           const std::function<bool(size_t)>& goes_on) {
  double loss = 0;
  std::optional<uint64_t> correct;
  std::vector<float> values;
  for (size_t first = 0; first < test.count(); first += kTestBatchSize) {
    if (!goes_on(first)) return absl::CancelledError("stopped");
    const size_t count = std::min<size_t>(kTestBatchSize, test.count() - first);
    const absl::StatusOr<StepResult> step = plan.Evaluate(BatchOf(test, first, count, values));
    if (!step.ok()) return step.status();
    loss += static_cast<double>(step->loss) * static_cast<double>(count);
    if (step->correct) correct = correct.value_or(0) + *step->correct;
  }
  // A maximum or an inactive unit can hide non-finite weights from the loss.
  if (!AllFinite({std::as_bytes(plan.weights_host())})) {
    loss = std::numeric_limits<double>::quiet_NaN();
  }
  const auto examples = static_cast<double>(test.count());
  TestMeasures measures{.loss = loss / examples};
  if (correct) measures.accuracy = static_cast<double>(*correct) / examples;
  return measures;
}

}  // namespace slipstream
