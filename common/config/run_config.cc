#include "common/config/run_config.h"

#include <optional>
#include <utility>

#include "common/config/run_checks.h"
#include "common/config/run_draft.h"
#include "common/config/run_reader.h"
#include "common/config/yaml_tree.h"

namespace slipstream {

namespace {

/// Reads and checks a run. `root` is null if the file has no tree; its errors are in `diagnostics`.
ConfigResult Resolve(const YamlNode* root, const Source& start, const Overrides& overrides,
                     DiagnosticList& diagnostics) {
  RunDraft draft;
  draft.start = start;
  if (root != nullptr) ReadFileTree(*root, draft, diagnostics);
  BringDefaults(draft);
  ReadEnvironment(overrides.environment, draft, diagnostics);
  BringDefaults(draft);
  ReadFlags(overrides.set, draft, diagnostics);
  BringDefaults(draft);
  // Without the file nearly every key would seem to be missing.
  if (root != nullptr && root->kind == YamlNode::Kind::kMap) {
    ResolveRun(draft, diagnostics);
    CheckRun(draft, diagnostics);
  }
  if (!diagnostics.empty()) return diagnostics.Sorted();
  return std::move(draft.spec);
}

}  // namespace

ConfigResult ParseRunConfig(std::string_view text, const std::string& file_name,
                            const Overrides& overrides) {
  DiagnosticList diagnostics;
  const std::optional<YamlNode> root = ParseYaml(text, file_name, diagnostics);
  return Resolve(root ? &*root : nullptr, {file_name, 1, 1}, overrides, diagnostics);
}

ConfigResult ReadRunConfig(const YamlNode& root, const Overrides& overrides) {
  DiagnosticList diagnostics;
  return Resolve(&root, root.source, overrides, diagnostics);
}

ConfigResult LoadRunConfig(const std::string& path, const Overrides& overrides) {
  const absl::StatusOr<std::string> text = ReadYamlFile(path);
  if (!text.ok()) {
    return std::vector<Diagnostic>{{{.file = path}, std::string(text.status().message())}};
  }
  return ParseRunConfig(*text, path, overrides);
}

std::vector<Diagnostic> CheckVariables(const std::map<std::string, std::string>& environment) {
  DiagnosticList diagnostics;
  CheckVariableNames(environment, diagnostics);
  return diagnostics.Sorted();
}

std::string ToString(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += diagnostic.ToString() + "\n";
  return text;
}

absl::StatusOr<RunSpec> ToStatusOr(ConfigResult result) {
  const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&result);
  if (diagnostics == nullptr) return std::get<RunSpec>(std::move(result));
  std::string text = ToString(*diagnostics);
  if (text.ends_with('\n')) text.pop_back();
  return absl::InvalidArgumentError(text);
}

}  // namespace slipstream
