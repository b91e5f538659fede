#ifndef SLIPSTREAM_COMMON_CONFIG_RUN_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_RUN_CHECKS_H_

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"

namespace slipstream {

/// Sets the keys that nobody has given to what the worker's algorithm brings along. Call it
/// whenever a source has been read: a stronger source then overrides what the algorithm of a weaker
/// one brought.
void BringDefaults(RunDraft& draft);

/// Fills in settings that follow from other keys (the net of a preset), and drops those that an
/// override made meaningless: `--set consistency.policy=async` silences the file's `n`, while `n`
/// beside `policy: async` in the same place is reported.
void ResolveRun(RunDraft& draft, DiagnosticList& diagnostics);

/// Checks conditions that concern several keys. A key whose own value was reported takes no part in
/// them.
void CheckRun(const RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_CHECKS_H_
