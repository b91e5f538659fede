#include "common/config/field_types.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/limits.h"
#include "common/config/layer_table.h"
#include "common/config/slowdown_table.h"
#include "common/config/stage_table.h"
#include "common/config/tensor_options_table.h"

namespace slipstream {
namespace {

constexpr size_t kLayersMax = 1024;

std::string CountOf(const ListType& type) {
  if (type.items_min == type.items_max) return fmt::format("{} items", type.items_min);
  return fmt::format("{} to {} items", type.items_min, type.items_max);
}

struct ReadAs {
  const std::string& path;
  const YamlNode& node;
  DiagnosticList& diagnostics;

  std::optional<FieldValue> operator()(const ScalarType& type) const {
    auto value = ReadScalar(type, node);
    if (const auto* error = std::get_if<ValueError>(&value)) return Refuse(node, error->message);
    return std::get<ScalarValue>(std::move(value));
  }

  std::optional<FieldValue> operator()(const ListType& type) const {
    if (node.kind != YamlNode::Kind::kList || node.items.size() < type.items_min ||
        node.items.size() > type.items_max) {
      return RefuseKind(type, node);
    }
    std::vector<ScalarValue> values;
    bool is_good = true;
    for (const YamlNode& item : node.items) {
      if (item.kind == YamlNode::Kind::kRefused) {
        is_good = false;
        continue;
      }
      auto value = ReadScalar(type.element, item);
      if (const auto* error = std::get_if<ValueError>(&value)) {
        Refuse(item, "has an item that " + error->message);
        is_good = false;
        continue;
      }
      values.push_back(std::get<ScalarValue>(std::move(value)));
    }
    return is_good ? std::optional<FieldValue>(std::move(values)) : std::nullopt;
  }

  std::optional<FieldValue> operator()(const LayersType& type) const {
    if (node.kind != YamlNode::Kind::kList || node.items.empty() ||
        node.items.size() > kLayersMax) {
      return RefuseKind(type, node);
    }
    std::vector<LayerSpec> layers;
    for (const YamlNode& item : node.items) {
      if (auto layer = ReadLayer(item, diagnostics)) layers.push_back(*layer);
    }
    if (layers.size() < node.items.size()) return std::nullopt;
    return layers;
  }

  std::optional<FieldValue> operator()(const SlowdownsType& type) const {
    return ReadRecords(type, kWorkersMax, ReadSlowdown);
  }

  std::optional<FieldValue> operator()(const StagesType& type) const {
    return ReadRecords(type, kPolicyStagesMax - 1, ReadStage);
  }

  std::optional<FieldValue> operator()(const TensorOptionsType& type) const {
    return ReadRecords(type, TensorOptions::kItemsMax, ReadTensorOptions);
  }

  /// Reads a list of at most `items_max` maps. `read_item` takes the place of an item, its node and
  /// the diagnostics.
  template <typename Type, typename Record>
  std::optional<FieldValue> ReadRecords(const Type& type, size_t items_max,
                                        std::optional<Record> read_item(size_t, const YamlNode&,
                                                                        DiagnosticList&)) const {
    if (node.kind != YamlNode::Kind::kList || node.items.size() > items_max) {
      return RefuseKind(type, node);
    }
    std::vector<Record> records;
    for (size_t place = 0; place < node.items.size(); ++place) {
      if (auto record = read_item(place, node.items[place], diagnostics)) {
        records.push_back(*std::move(record));
      }
    }
    if (records.size() < node.items.size()) return std::nullopt;
    return records;
  }

  /// Reports that the node is no list, or one with too few or too many items.
  std::optional<FieldValue> RefuseKind(const FieldType& type, const YamlNode& list) const {
    const bool is_list = list.kind == YamlNode::Kind::kList;
    const bool is_item = list.kind == YamlNode::Kind::kScalar || list.kind == YamlNode::Kind::kMap;
    return Refuse(
        list, fmt::format("must be {}, not {}{}", DescribeField(type),
                          is_list ? fmt::format("{} items", list.items.size()) : DescribeNode(list),
                          is_item ? "; put it into brackets, [ and ]" : ""));
  }

  std::optional<FieldValue> Refuse(const YamlNode& at, const std::string& message) const {
    diagnostics.Report(at.source, path + " " + message);
    return std::nullopt;
  }
};

struct WriteAs {
  const FieldValue& value;

  std::string operator()(const ScalarType& type) const {
    return WriteScalar(type, std::get<ScalarValue>(value));
  }

  std::string operator()(const ListType& type) const {
    std::vector<std::string> items;
    for (const ScalarValue& item : std::get<std::vector<ScalarValue>>(value)) {
      items.push_back(WriteScalar(type.element, item));
    }
    return fmt::format("[{}]", fmt::join(items, ", "));
  }

  std::string operator()(const LayersType&) const {
    std::vector<std::string> layers;
    for (const LayerSpec& layer : std::get<std::vector<LayerSpec>>(value)) {
      layers.push_back(WriteLayer(layer));
    }
    return fmt::format("[{}]", fmt::join(layers, ", "));
  }

  std::string operator()(const SlowdownsType&) const { return WriteRecords(SlowdownFields()); }
  std::string operator()(const StagesType&) const { return WriteRecords(StageFields()); }
  std::string operator()(const TensorOptionsType&) const {
    return WriteRecords(TensorOptionsFields());
  }

  template <typename Record>
  std::string WriteRecords(const RecordFields<Record>& fields) const {
    std::vector<std::string> items;
    for (const Record& item : std::get<std::vector<Record>>(value)) {
      items.push_back(WriteRecord(fields, item));
    }
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
};

struct Describe {
  std::string operator()(const ScalarType& type) const { return DescribeScalar(type); }
  std::string operator()(const ListType& type) const {
    return fmt::format("a list of {}, each {}", CountOf(type), DescribeScalar(type.element));
  }
  std::string operator()(const LayersType&) const {
    return fmt::format("a list of 1 to {} layers", kLayersMax);
  }
  std::string operator()(const SlowdownsType&) const {
    return fmt::format("a list of at most {} maps {}", kWorkersMax,
                       DescribeRecord(SlowdownFields()));
  }
  std::string operator()(const StagesType&) const {
    return fmt::format("a list of at most {} maps {}", kPolicyStagesMax - 1,
                       DescribeRecord(StageFields()));
  }
  std::string operator()(const TensorOptionsType&) const {
    return fmt::format("a list of at most {} maps {}", TensorOptions::kItemsMax,
                       DescribeRecord(TensorOptionsFields()));
  }
};

}  // namespace

std::optional<FieldValue> ReadField(const std::string& path, const FieldType& type,
                                    const YamlNode& node, DiagnosticList& diagnostics) {
  if (node.kind == YamlNode::Kind::kRefused) return std::nullopt;
  return std::visit(ReadAs{path, node, diagnostics}, type);
}

std::string WriteField(const FieldType& type, const FieldValue& value) {
  return std::visit(WriteAs{value}, type);
}

std::string DescribeField(const FieldType& type) { return std::visit(Describe{}, type); }

}  // namespace slipstream
