#ifndef SLIPSTREAM_WORKER_TRAINING_MEASURES_H_
#define SLIPSTREAM_WORKER_TRAINING_MEASURES_H_

#include <optional>

namespace slipstream {

/// The quality of weights: means over a test set.
struct TestMeasures {
  double loss = 0;                 // NaN if any weight is not finite, even if the loss is.
  std::optional<double> accuracy;  // Absent if the loss has no classes.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_MEASURES_H_
