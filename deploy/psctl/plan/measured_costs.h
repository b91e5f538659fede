#ifndef SLIPSTREAM_DEPLOY_PSCTL_PLAN_MEASURED_COSTS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PLAN_MEASURED_COSTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/command_line.h"
#include "deploy/psctl/prediction/run_costs.h"

namespace slipstream {

/// Runs ps_lab measure, for six seconds or so. Fails with NOT_FOUND if there is no such program,
/// and with what it says if it fails.
absl::StatusOr<KnownCosts> MeasureCosts(const ConfigArguments& config, const RunSpec& run,
                                        const std::string& bin_dir);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PLAN_MEASURED_COSTS_H_
