#include "worker/training/test_measures.h"

#include <algorithm>
#include <span>

namespace slipstream {

absl::StatusOr<TestMeasures> MeasureOnTest(Plan& plan, const Dataset& test,
                                           const std::function<bool()>& cancelled) {
  double loss = 0;
  uint64_t correct = 0;
  for (size_t first = 0; first < test.count(); first += kTestBatchSize) {
    if (cancelled()) return absl::CancelledError("stopped");
    const size_t count = std::min<size_t>(kTestBatchSize, test.count() - first);
    const size_t elements = test.shape.elements();
    const absl::StatusOr<StepResult> step = plan.Evaluate(
        {.examples = std::span(test.examples).subspan(first * elements, count * elements),
         .labels = std::span(test.labels).subspan(first, count)});
    if (!step.ok()) return step.status();
    loss += static_cast<double>(step->loss) * static_cast<double>(count);
    correct += step->correct;
  }
  const auto examples = static_cast<double>(test.count());
  return TestMeasures{loss / examples, static_cast<double>(correct) / examples};
}

}  // namespace slipstream
