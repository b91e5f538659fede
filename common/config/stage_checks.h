#ifndef SLIPSTREAM_COMMON_CONFIG_STAGE_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_STAGE_CHECKS_H_

#include <string>

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"
#include "common/settings/parameters.h"

namespace slipstream {

/// Says that a policy's parameter is out of the bound that follows from the number of workers.
std::string DescribeMisfit(const ParameterRow& row, double value, double workers);

/// Reports what is wrong with the policies of `consistency.before`, one after another.
void CheckStages(const RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_STAGE_CHECKS_H_
