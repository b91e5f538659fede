#ifndef SLIPSTREAM_COMMON_CONFIG_WORKER_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_WORKER_CHECKS_H_

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"

namespace slipstream {

/// Reports what is wrong with the section `worker`, by its numbers.
void CheckWorker(const RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_WORKER_CHECKS_H_
