#ifndef SLIPSTREAM_COMMON_SETTINGS_RUN_CHANGE_H_
#define SLIPSTREAM_COMMON_SETTINGS_RUN_CHANGE_H_

#include "common/settings/run_spec.h"

namespace slipstream {

/// A change of a run's settings while it trains. It is for the rest of the run.
struct RunChange {
  /// The settings as they are to be from now on. They differ from the run's in the learning rate of
  /// the servers' rule, and, if `sets_policy`, in policy and parameters of `consistency`.
  RunSpec settings;
  bool sets_policy = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_RUN_CHANGE_H_
