#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CHECKS_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CHECKS_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/settings/run_spec.h"
#include "deploy/lab/world_spec.h"

namespace slipstream {

/// Says which settings of a run virtual time does not know (INVALID_ARGUMENT); OK if it knows all.
absl::Status CheckVirtual(const RunSpec& run);

/// Returns INVALID_ARGUMENT if the world names workers that the run does not have.
absl::Status CheckWorld(const WorldSpec& world, const RunSpec& run);

/// Returns when the last worker comes. The run waits for it, and for so much longer than it says.
absl::Duration LastArrival(const WorldSpec& world);

/// Returns the settings without what has no meaning in one process: durability, saved state of
/// workers, and by which means bytes travel.
RunSpec WithoutRealWorld(RunSpec run);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CHECKS_H_
