#ifndef SLIPSTREAM_COMMON_CONFIG_RECORD_FIELDS_H_
#define SLIPSTREAM_COMMON_CONFIG_RECORD_FIELDS_H_

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/config/scalar_types.h"
#include "common/config/suggestion.h"
#include "common/config/yaml_tree.h"

namespace slipstream {

/// One setting of an item of a list: `units` in `dense: {units: 10}`. A `Record` is the struct that
/// all settings of the item fill in.
template <typename Record>
struct RecordField {
  std::string name;
  std::string doc;
  ScalarType type;
  bool is_required = false;

  /// Returns nothing if the item leaves the setting out, or if the setting has no meaning beside
  /// the others of the item.
  std::function<std::optional<ScalarValue>(const Record&)> get;
  std::function<void(Record&, const ScalarValue&)> set;
};

template <typename Record>
using RecordFields = std::vector<RecordField<Record>>;

/// Returns the field that `entry` names. If there is none, reports that and returns null.
template <typename Record>
const RecordField<Record>* FindRecordField(const RecordFields<Record>& fields,
                                           const std::string& what, const YamlNode::Entry& entry,
                                           DiagnosticList& diagnostics) {
  std::vector<std::string> names;
  for (const RecordField<Record>& field : fields) {
    if (field.name == entry.key) return &field;
    names.push_back(field.name);
  }
  const std::string known =
      names.empty() ? "no settings" : fmt::format("{}", fmt::join(names, ", "));
  diagnostics.Report(entry.key_source,
                     fmt::format("unknown key \"{}\" of {}, which has {}{}", entry.key, what, known,
                                 DidYouMean(entry.key, names)));
  return nullptr;
}

/// Reads the map `settings` over the defaults in `record`. Returns nothing if it reported an error.
/// `what` names the item in reports; `source` is the place of the item, for a missing setting.
template <typename Record>
std::optional<Record> ReadRecord(const RecordFields<Record>& fields, const std::string& what,
                                 const Source& source, const YamlNode& settings, Record record,
                                 DiagnosticList& diagnostics) {
  bool is_good = true;
  for (const YamlNode::Entry& entry : settings.entries) {
    const RecordField<Record>* field = FindRecordField(fields, what, entry, diagnostics);
    if (field == nullptr || entry.value.kind == YamlNode::Kind::kRefused) {
      is_good = false;
      continue;
    }
    const auto value = ReadScalar(field->type, entry.value);
    if (const auto* error = std::get_if<ValueError>(&value)) {
      diagnostics.Report(entry.value.source,
                         fmt::format("{} of {} {}", field->name, what, error->message));
      is_good = false;
      continue;
    }
    field->set(record, std::get<ScalarValue>(value));
  }
  const bool is_read = is_good;
  for (const YamlNode::Entry& entry : settings.entries) {
    const auto field = std::ranges::find(fields, entry.key, &RecordField<Record>::name);
    if (!is_read || field->get(record).has_value()) continue;
    diagnostics.Report(
        entry.key_source,
        fmt::format("{} of {} has no meaning beside the other settings there", field->name, what));
    is_good = false;
  }
  for (const RecordField<Record>& field : fields) {
    const auto is_it = [&](const YamlNode::Entry& entry) { return entry.key == field.name; };
    if (!field.is_required || std::ranges::any_of(settings.entries, is_it)) continue;
    diagnostics.Report(
        source, fmt::format("{} needs \"{}\": {}", what, field.name, DescribeScalar(field.type)));
    is_good = false;
  }
  return is_good ? std::optional(std::move(record)) : std::nullopt;
}

/// Returns the map in one line, with every setting that it has: `{units: 10}`.
template <typename Record>
std::string WriteRecord(const RecordFields<Record>& fields, const Record& record) {
  std::vector<std::string> settings;
  for (const RecordField<Record>& field : fields) {
    const std::optional<ScalarValue> value = field.get(record);
    if (value) settings.push_back(field.name + ": " + WriteScalar(field.type, *value));
  }
  return fmt::format("{{{}}}", fmt::join(settings, ", "));
}

/// Returns a description of the map: `{delay: a time in …, slower: a number in …}`.
template <typename Record>
std::string DescribeRecord(const RecordFields<Record>& fields) {
  std::vector<std::string> settings;
  for (const RecordField<Record>& field : fields) {
    settings.push_back(field.name + ": " + DescribeScalar(field.type));
  }
  return fmt::format("{{{}}}", fmt::join(settings, ", "));
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RECORD_FIELDS_H_
