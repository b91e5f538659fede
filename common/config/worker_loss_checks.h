#ifndef SLIPSTREAM_COMMON_CONFIG_WORKER_LOSS_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_WORKER_LOSS_CHECKS_H_

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"

namespace slipstream {

/// Reports settings about lost workers (cluster.on_worker_loss, cluster.min_workers) that do not
/// fit the others.
void CheckWorkerLoss(const RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_WORKER_LOSS_CHECKS_H_
