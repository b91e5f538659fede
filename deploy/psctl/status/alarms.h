#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_ALARMS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_ALARMS_H_

#include <vector>

#include "common/alarms/run_alarms.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {

/// Returns the run's alarms as lines, the worst first.
std::vector<ScreenLine> StatusAlarms(const v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_ALARMS_H_
