#ifndef SLIPSTREAM_WORKER_TRAINING_TEST_MEASURES_H_
#define SLIPSTREAM_WORKER_TRAINING_TEST_MEASURES_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "common/settings/worker_memory.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"
#include "worker/training/measures.h"

namespace slipstream {

/// Measures the weights that have arrived in `plan`, which takes batches of kTestBatchSize. Calls
/// `goes_on` before each batch with the number of examples measured so far; returns CANCELLED once
/// it returns false.
absl::StatusOr<TestMeasures> MeasureOnTest(Plan& plan, const Dataset& test,
                                           const std::function<bool(size_t)>& goes_on);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_TEST_MEASURES_H_
