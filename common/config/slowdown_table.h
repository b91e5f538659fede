#ifndef SLIPSTREAM_COMMON_CONFIG_SLOWDOWN_TABLE_H_
#define SLIPSTREAM_COMMON_CONFIG_SLOWDOWN_TABLE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "common/config/diagnostic.h"
#include "common/config/record_fields.h"
#include "common/config/yaml_tree.h"
#include "common/run/worker_slowdown.h"

namespace slipstream {

/// What one item of `testing.workers` may say.
const RecordFields<WorkerSlowdown>& SlowdownFields();

/// Reads the item of worker `worker`; an item without a value slows nobody. Nothing if something
/// was reported.
std::optional<WorkerSlowdown> ReadSlowdown(size_t worker, const YamlNode& node,
                                           DiagnosticList& diagnostics);

/// What an item is, in words: `{delay: a time in …, slower: a number in …}`.
std::string DescribeSlowdown();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_SLOWDOWN_TABLE_H_
