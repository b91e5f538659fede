#ifndef SLIPSTREAM_COMMON_CONFIG_RUN_CONFIG_H_
#define SLIPSTREAM_COMMON_CONFIG_RUN_CONFIG_H_

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/diagnostic.h"
#include "common/config/yaml_tree.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Changes to a file's settings that come from outside. Flags override the environment, which
/// overrides the file. An override of a key that decides about others (`consistency.policy`)
/// silences the keys that the weaker source gave for another choice.
struct Overrides {
  /// `key=value` with a dotted key, from `--set`; the last value of a key counts. A scalar is taken
  /// as it stands; a list may omit its brackets: `cluster.servers=localhost:7070,localhost:7071`.
  std::vector<std::string> set;

  /// The environment, or any part of it: only names that begin with PS_ are looked at. A name is
  /// PS_ and the dotted key in upper case with '_' for '.'. A name that fits no key is an error,
  /// except for names that stand for flags of programs, such as PS_COORDINATOR.
  std::map<std::string, std::string> environment;
};

/// A run that has passed every check, or all of its errors in order of position.
using ConfigResult = std::variant<RunSpec, std::vector<Diagnostic>>;

/// Reads run.yaml from `text`; `file_name` appears in diagnostics only.
ConfigResult ParseRunConfig(std::string_view text, const std::string& file_name,
                            const Overrides& overrides = {});

/// Reads run.yaml from a tree, such as a part of another file. Several runs may be read from one.
ConfigResult ReadRunConfig(const YamlNode& root, const Overrides& overrides = {});

/// Reads the file at `path`; a file that cannot be read is one diagnostic.
ConfigResult LoadRunConfig(const std::string& path, const Overrides& overrides = {});

/// Checks the names of variables as ParseRunConfig does, for programs that take their settings from
/// elsewhere.
std::vector<Diagnostic> CheckVariables(const std::map<std::string, std::string>& environment);

/// Returns the diagnostics, one per line.
std::string ToString(const std::vector<Diagnostic>& diagnostics);

/// Turns a result into a status: INVALID_ARGUMENT with the diagnostics, one per line.
absl::StatusOr<RunSpec> ToStatusOr(ConfigResult result);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_CONFIG_H_
