#ifndef SLIPSTREAM_COMMON_CONFIG_TENSOR_OPTIONS_TABLE_H_
#define SLIPSTREAM_COMMON_CONFIG_TENSOR_OPTIONS_TABLE_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/config/record_fields.h"
#include "common/config/run_draft.h"
#include "common/config/yaml_tree.h"
#include "common/layout/tensor_layout.h"
#include "common/settings/tensor_options.h"

namespace slipstream {

/// Returns the settings that one item of `optimizer.per_tensor` may have.
const RecordFields<TensorOptions>& TensorOptionsFields();

/// Reads the item at `place`, from 0. Returns nothing if it reported an error.
std::optional<TensorOptions> ReadTensorOptions(size_t place, const YamlNode& node,
                                               DiagnosticList& diagnostics);

/// Checks that every item counts for a tensor of the net.
void CheckTensorOptions(const RunDraft& draft, const TensorLayout& layout,
                        DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_TENSOR_OPTIONS_TABLE_H_
