#include "common/config/run_config.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "common/config/run_checks.h"
#include "common/config/run_draft.h"
#include "common/config/run_reader.h"
#include "common/config/yaml_tree.h"

namespace slipstream {

ConfigResult ParseRunConfig(std::string_view text, const std::string& file_name,
                            const Overrides& overrides) {
  DiagnosticList diagnostics;
  RunDraft draft;
  draft.start = {file_name, 1, 1};
  const std::optional<YamlNode> root = ParseYaml(text, file_name, diagnostics);
  if (root) ReadFileTree(*root, draft, diagnostics);
  BringDefaults(draft);
  ReadEnvironment(overrides.environment, draft, diagnostics);
  BringDefaults(draft);
  ReadFlags(overrides.set, draft, diagnostics);
  BringDefaults(draft);
  // Without the file nearly every key would seem to be missing.
  if (root && root->kind == YamlNode::Kind::kMap) {
    ResolveRun(draft, diagnostics);
    CheckRun(draft, diagnostics);
  }
  if (!diagnostics.empty()) return diagnostics.Sorted();
  return std::move(draft.spec);
}

ConfigResult LoadRunConfig(const std::string& path, const Overrides& overrides) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  // Read one byte more than is allowed, so that a longer or endless file is refused as too long.
  std::string text(kYamlBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  // Opening a directory succeeds, and only reading it fails.
  if (!file.is_open() || file.bad()) {
    const std::string reason = errno != 0 ? std::strerror(errno) : "it cannot be read";
    return std::vector<Diagnostic>{{{.file = path}, "cannot open the file: " + reason}};
  }
  return ParseRunConfig(text, path, overrides);
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
