#ifndef SLIPSTREAM_COMMON_CONFIG_FIELD_TABLE_H_
#define SLIPSTREAM_COMMON_CONFIG_FIELD_TABLE_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/config/field_types.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// States that a key has a meaning only while the key at `path` holds one of `choices`.
struct Condition {
  std::string path;
  std::vector<std::string> choices;
};

/// One key of run.yaml. Parser, checks, printer, environment variables and the documentation of
/// the format all follow from this table, so that they cannot disagree.
struct Field {
  enum class Locality {
    kRun,     // The same for the whole run; servers that differ in it are refused.
    kWorker,  // Each worker may have its own.
    kServer,  // Each server may have its own.
  };

  std::string path;  // For example training.batch_size.
  std::string doc;   // A sentence or two.
  FieldType type;
  std::function<FieldValue(const RunSpec&)> get;
  std::function<void(RunSpec&, const FieldValue&)> set;
  Locality locality = Locality::kRun;
  std::optional<Condition> condition;
  std::string example;  // The value in the template, if the default says nothing.

  /// Set if the default follows from another key. The template then has the key as a comment, since
  /// a written value would stay when the other key is changed.
  bool has_dependent_default = false;

  /// For example PS_TRAINING_BATCH_SIZE.
  std::string EnvironmentName() const;

  /// For example batch_size.
  std::string name() const;

  /// Returns whether a key that applies has a part in the run; null if it always has.
  std::function<bool(const RunSpec&)> is_on = nullptr;

  /// Returns whether the key has a meaning in this run.
  bool Applies(const RunSpec& spec) const;

  FieldValue default_value() const { return get(RunSpec{}); }
};

/// Returns all keys in the order of the canonical file; keys of one section are neighbours.
const std::vector<Field>& Fields();

/// Returns the key at `path`; null if there is none.
const Field* FindField(std::string_view path);

/// Returns what is wrong with the text of a flag that stands for the key at `path`; empty if
/// nothing is. REQUIRES: there is such a key, and it holds a scalar.
std::string FlagError(std::string_view path, const std::string& text);

/// Returns whether `path` is a section, such as `training` or `optimizer.schedule`.
bool IsSection(std::string_view path);

/// Returns the names of keys and sections directly below `section`; "" is the top level.
std::vector<std::string> KeysOf(std::string_view section);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_FIELD_TABLE_H_
