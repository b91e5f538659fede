#ifndef SLIPSTREAM_WORKER_TRAINING_TEST_MEASURES_H_
#define SLIPSTREAM_WORKER_TRAINING_TEST_MEASURES_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"
#include "worker/training/measures.h"

namespace slipstream {

/// The number of examples in one batch of a measurement. It is the same everywhere, because the
/// last digits of the mean loss depend on how examples are grouped.
inline constexpr uint32_t kTestBatchSize = 256;

/// Measures the weights that have arrived in `plan`, which takes batches of kTestBatchSize. Calls
/// `goes_on` before each batch with the number of examples measured so far; returns CANCELLED once
/// it returns false.
absl::StatusOr<TestMeasures> MeasureOnTest(Plan& plan, const Dataset& test,
                                           const std::function<bool(size_t)>& goes_on);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_TEST_MEASURES_H_
