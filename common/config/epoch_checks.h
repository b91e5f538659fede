#ifndef SLIPSTREAM_COMMON_CONFIG_EPOCH_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_EPOCH_CHECKS_H_

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"

namespace slipstream {

/// Checks that what is counted in epochs has epochs to count: where workers choose their own
/// mini-batches, an epoch has a length only if the settings say one.
void CheckEpochs(const RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_EPOCH_CHECKS_H_
