#ifndef SLIPSTREAM_COMMON_CONFIG_RUN_READER_H_
#define SLIPSTREAM_COMMON_CONFIG_RUN_READER_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"
#include "common/config/yaml_tree.h"

namespace slipstream {

/// Three functions that read settings into a draft. Call them in this order; each overrides the
/// values of the one before. They check key by key; run_checks.h checks conditions on several keys.

/// Reads a whole file.
void ReadFileTree(const YamlNode& root, RunDraft& draft, DiagnosticList& diagnostics);

/// Reports each variable that begins with PS_ but names neither a key nor a variable that one of
/// our programs looks for.
void CheckVariableNames(const std::map<std::string, std::string>& environment,
                        DiagnosticList& diagnostics);

/// Reads the variables that begin with PS_. A variable that names no key is an error, unless one of
/// our programs looks for it.
void ReadEnvironment(const std::map<std::string, std::string>& environment, RunDraft& draft,
                     DiagnosticList& diagnostics);

/// Reads flags such as `training.epochs=3`; the last value of a key counts.
void ReadFlags(const std::vector<std::string>& flags, RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_READER_H_
