#ifndef SLIPSTREAM_COMMON_CONFIG_FIELD_TABLE_H_
#define SLIPSTREAM_COMMON_CONFIG_FIELD_TABLE_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/config/field_types.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// A key that means something only while another one holds one of some choices.
struct Condition {
  std::string path;
  std::vector<std::string> choices;
};

/// One key of run.yaml. Parser, checks, printer, environment variables and the documentation of
/// the format all follow from this table, so that they cannot disagree.
struct Field {
  enum class Locality {
    kRun,     // One truth for the whole run; servers that differ in it are refused.
    kWorker,  // Each worker may have its own.
    kServer,  // Each server may have its own.
  };

  std::string path;  // training.batch_size
  std::string doc;   // A sentence or two.
  FieldType type;
  std::function<FieldValue(const RunSpec&)> get;
  std::function<void(RunSpec&, const FieldValue&)> set;
  Locality locality = Locality::kRun;
  std::optional<Condition> condition;
  std::string example;  // For the template, where the default says nothing.

  /// Its default follows from another key: in a template it is a comment, or it would stay as it is
  /// when that is changed.
  bool has_dependent_default = false;

  /// PS_TRAINING_BATCH_SIZE
  std::string EnvironmentName() const;

  /// batch_size
  std::string name() const;

  /// Whether the key means anything in this run.
  bool Applies(const RunSpec& spec) const;

  FieldValue default_value() const { return get(RunSpec{}); }
};

/// In the order of the canonical file; keys of one section are neighbours.
const std::vector<Field>& Fields();

/// Nullptr if there is none at `path`.
const Field* FindField(std::string_view path);

/// What is wrong with the text of a flag that stands for the key at `path`; empty if nothing is.
/// REQUIRES: there is such a key, and it holds a scalar.
std::string FlagError(std::string_view path, const std::string& text);

/// True of `training` and `optimizer.schedule`.
bool IsSection(std::string_view path);

/// The names of keys and sections directly below `section`; of the top level for "".
std::vector<std::string> KeysOf(std::string_view section);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_FIELD_TABLE_H_
