#ifndef SLIPSTREAM_WORKER_TRAINING_TEST_MEASURES_H_
#define SLIPSTREAM_WORKER_TRAINING_TEST_MEASURES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"

namespace slipstream {

/// Examples of one batch of a measurement. The same everywhere, as the mean loss depends in its
/// last digits on how examples are grouped.
inline constexpr uint32_t kTestBatchSize = 256;

/// How good weights are: means over a test set.
struct TestMeasures {
  double loss = 0;                 // NaN if a weight is not finite, whatever comes of it.
  std::optional<double> accuracy;  // Absent where the loss knows no classes.
};

/// Measures the weights that have arrived in `plan`, which takes batches of kTestBatchSize. Before
/// each batch `goes_on` is told how many examples were measured; CANCELLED once it says no.
absl::StatusOr<TestMeasures> MeasureOnTest(Plan& plan, const Dataset& test,
                                           const std::function<bool(size_t)>& goes_on);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_TEST_MEASURES_H_
