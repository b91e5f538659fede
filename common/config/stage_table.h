#ifndef SLIPSTREAM_COMMON_CONFIG_STAGE_TABLE_H_
#define SLIPSTREAM_COMMON_CONFIG_STAGE_TABLE_H_

#include <cstddef>
#include <optional>

#include "common/config/diagnostic.h"
#include "common/config/record_fields.h"
#include "common/config/yaml_tree.h"
#include "common/settings/consistency_spec.h"

namespace slipstream {

/// Returns the settings that one item of `consistency.before` may have.
const RecordFields<PolicyStage>& StageFields();

/// Reads the item at `place` of `consistency.before`. Returns nothing if it reported an error.
std::optional<PolicyStage> ReadStage(size_t place, const YamlNode& node,
                                     DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_STAGE_TABLE_H_
