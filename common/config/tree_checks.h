#ifndef SLIPSTREAM_COMMON_CONFIG_TREE_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_TREE_CHECKS_H_

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"

namespace slipstream {

/// Reports the settings under which aggregators cannot combine the pushes of a group of workers
/// (ClusterSpec::Tree).
void CheckTree(const RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_TREE_CHECKS_H_
