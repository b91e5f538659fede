#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CHECKS_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CHECKS_H_

#include "absl/status/status.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Says which settings of a run virtual time does not know (INVALID_ARGUMENT); OK if it knows all.
absl::Status CheckVirtual(const RunSpec& run);

/// Returns the settings without what has no meaning in one process: durability, saved state of
/// workers, the time that the run waits for its members, and by which means bytes travel.
RunSpec WithoutRealWorld(RunSpec run);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CHECKS_H_
