#ifndef SLIPSTREAM_COMMON_CONFIG_START_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_START_CHECKS_H_

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"

namespace slipstream {

/// Reports the settings under which a run cannot begin with the values of a checkpoint (StartSpec).
/// The checkpoint itself is read by the servers.
void CheckStart(const RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_START_CHECKS_H_
