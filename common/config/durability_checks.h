#ifndef SLIPSTREAM_COMMON_CONFIG_DURABILITY_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_DURABILITY_CHECKS_H_

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"

namespace slipstream {

/// Reports the settings under which servers cannot save their state and go on from it
/// (DurabilitySpec). A directory is not asked for: psctl run has one, and other servers refuse to
/// start without one.
void CheckDurability(const RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_DURABILITY_CHECKS_H_
