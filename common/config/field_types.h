#ifndef SLIPSTREAM_COMMON_CONFIG_FIELD_TYPES_H_
#define SLIPSTREAM_COMMON_CONFIG_FIELD_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/config/scalar_types.h"
#include "common/config/yaml_tree.h"
#include "common/model/model_spec.h"
#include "common/settings/consistency_spec.h"
#include "common/settings/tensor_options.h"
#include "common/settings/worker_slowdown.h"

namespace slipstream {

/// A list whose elements are scalars of one type, `items_min` to `items_max` of them.
struct ListType {
  ScalarType element;
  size_t items_min = 0;
  size_t items_max = 0;
};

/// The layers of a net; layer_table.h says what a layer may be.
struct LayersType {};

/// The type of the list of slowdowns, one for each worker; slowdown_table.h has the settings of an
/// item.
struct SlowdownsType {};

/// The type of the list of policies that come before another; stage_table.h has the settings of an
/// item.
struct StagesType {};

/// The type of the list of options for tensors; tensor_options_table.h has the settings of an item.
struct TensorOptionsType {};

/// The type of value that a key of a configuration may hold.
using FieldType =
    std::variant<ScalarType, ListType, LayersType, SlowdownsType, StagesType, TensorOptionsType>;
using FieldValue =
    std::variant<ScalarValue, std::vector<ScalarValue>, std::vector<LayerSpec>,
                 std::vector<WorkerSlowdown>, std::vector<PolicyStage>, std::vector<TensorOptions>>;

/// Reads the value of the key at `path`. If anything is wrong with it, reports all of that and
/// returns nothing.
std::optional<FieldValue> ReadField(const std::string& path, const FieldType& type,
                                    const YamlNode& node, DiagnosticList& diagnostics);

/// Returns the value in one line, as YAML that reads back as the same value.
std::string WriteField(const FieldType& type, const FieldValue& value);

/// Describes in words which values there are.
std::string DescribeField(const FieldType& type);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_FIELD_TYPES_H_
