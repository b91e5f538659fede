#ifndef SLIPSTREAM_DEPLOY_LAB_UPDATE_COSTS_H_
#define SLIPSTREAM_DEPLOY_LAB_UPDATE_COSTS_H_

#include <cstddef>

#include "absl/time/time.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The times of the work that servers do on values, in seconds for a whole model.
struct UpdateCosts {
  /// An update by the rule that servers follow.
  double rule = 0;

  /// Adding one gradient to the sum of a round.
  double fold = 0;
};

/// Measures both for a model of `parameters` values.
UpdateCosts MeasureUpdates(const RunSpec& run, size_t parameters, absl::Duration budget);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_UPDATE_COSTS_H_
