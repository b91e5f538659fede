#ifndef SLIPSTREAM_DEPLOY_PSCTL_PLAN_VERDICTS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PLAN_VERDICTS_H_

#include <string>
#include <vector>

#include "common/settings/run_spec.h"
#include "deploy/psctl/prediction/prediction.h"
#include "deploy/psctl/prediction/run_costs.h"

namespace slipstream {

/// Says in sentences what follows from predictions for one number of workers, those of
/// PolicyVariants(run): whether distributing pays, whether all-reduce is better than servers in
/// step, what decides about an exchange, from how many workers on more do not help, and what a tree
/// saves.
std::vector<std::string> Verdicts(const RunSpec& run, const RunCosts& costs,
                                  const std::vector<Prediction>& predictions);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PLAN_VERDICTS_H_
