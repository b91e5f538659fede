#ifndef SLIPSTREAM_COMMON_CONFIG_ALL_REDUCE_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_ALL_REDUCE_CHECKS_H_

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"

namespace slipstream {

/// Reports the settings that have no place where workers add up their gradients themselves
/// (PolicyTraits::workers_make_weights).
void CheckAllReduce(const RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_ALL_REDUCE_CHECKS_H_
