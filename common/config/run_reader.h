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

/// Three readers of settings into a draft, to be called in this order; each overrides what was
/// there. They check key by key; run_checks.h has what concerns several keys.

/// Reads a whole file.
void ReadFileTree(const YamlNode& root, RunDraft& draft, DiagnosticList& diagnostics);

/// Reports each variable that begins with PS_ and names neither a key nor what a program of ours
/// looks for.
void CheckVariableNames(const std::map<std::string, std::string>& environment,
                        DiagnosticList& diagnostics);

/// Reads the variables that begin with PS_; one that names no key is an error unless it is one that
/// a program of ours looks for.
void ReadEnvironment(const std::map<std::string, std::string>& environment, RunDraft& draft,
                     DiagnosticList& diagnostics);

/// Reads `training.epochs=3` and the like; the last of one key counts.
void ReadFlags(const std::vector<std::string>& flags, RunDraft& draft, DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_RUN_READER_H_
