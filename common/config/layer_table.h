#ifndef SLIPSTREAM_COMMON_CONFIG_LAYER_TABLE_H_
#define SLIPSTREAM_COMMON_CONFIG_LAYER_TABLE_H_

#include <optional>
#include <string>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/config/record_fields.h"
#include "common/config/yaml_tree.h"
#include "common/model/model_spec.h"

namespace slipstream {

/// A setting of a kind of layer.
using LayerField = RecordField<LayerSpec>;

/// A kind of layer as it is written: `- dense: {units: 10}`, or `- relu` if it needs no settings.
struct LayerKind {
  std::string name;
  std::string doc;
  LayerSpec defaults;
  RecordFields<LayerSpec> fields;
};

const std::vector<LayerKind>& LayerKinds();

/// Reads one item of `model.layers`. Returns nothing if an error was reported.
std::optional<LayerSpec> ReadLayer(const YamlNode& node, DiagnosticList& diagnostics);

/// Returns the layer in one line, with every setting.
std::string WriteLayer(const LayerSpec& layer);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_LAYER_TABLE_H_
