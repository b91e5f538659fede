#ifndef SLIPSTREAM_COMMON_SETTINGS_CARRIED_STATE_H_
#define SLIPSTREAM_COMMON_SETTINGS_CARRIED_STATE_H_

#include <string>
#include <vector>

#include "common/settings/run_spec.h"

namespace slipstream {

/// Returns the kinds of state that each worker of the run carries from one push to the next, and
/// that servers do not have, in words such as "rounding errors of topk". Empty if there is none:
/// then a worker that is started again has lost nothing.
std::vector<std::string> CarriedState(const RunSpec& run);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_CARRIED_STATE_H_
