#ifndef SLIPSTREAM_COMMON_CONFIG_SLOWDOWN_TABLE_H_
#define SLIPSTREAM_COMMON_CONFIG_SLOWDOWN_TABLE_H_

#include <cstddef>
#include <optional>

#include "common/config/diagnostic.h"
#include "common/config/record_fields.h"
#include "common/config/yaml_tree.h"
#include "common/settings/worker_slowdown.h"

namespace slipstream {

/// Returns the settings that one item of `testing.workers` may have.
const RecordFields<WorkerSlowdown>& SlowdownFields();

/// Reads the item of worker `worker`. An item without a value means no slowdown. Returns nothing if
/// it reported an error.
std::optional<WorkerSlowdown> ReadSlowdown(size_t worker, const YamlNode& node,
                                           DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_SLOWDOWN_TABLE_H_
