#include "deploy/psctl/config/commands.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "common/config/run_text.h"
#include "common/files/whole_file.h"
#include "common/json/json_text.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/settings/learning_warnings.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/config/loading.h"
#include "deploy/psctl/config/run_plan.h"
#include "deploy/psctl/config/schema.h"
#include "deploy/psctl/config/yaml_json.h"

namespace slipstream {

int ConfigInitCommand(const ConfigInitArguments& arguments) {
  if (arguments.path == "-") {
    fmt::print("{}", ConfigTemplate());
    return static_cast<int>(ExitCode::kOk);
  }
  std::error_code error;
  if (!arguments.force && std::filesystem::exists(arguments.path, error)) {
    return static_cast<int>(
        Complain(ExitCode::kIo, arguments.path + " exists; --force replaces it"));
  }
  const absl::Status written = WriteWholeFile(arguments.path, ConfigTemplate());
  if (!written.ok()) {
    return static_cast<int>(Complain(ExitCode::kIo, std::string(written.message())));
  }
  WriteToStderr("psctl: wrote " + arguments.path + "\n");
  return static_cast<int>(ExitCode::kOk);
}

int ConfigShowCommand(const ConfigShowArguments& arguments) {
  const auto loaded = LoadConfigOrComplain(arguments.config);
  if (const auto* code = std::get_if<ExitCode>(&loaded)) return static_cast<int>(*code);
  const std::string yaml = ToYaml(std::get<RunSpec>(loaded));
  const bool as_json = arguments.format == OutputFormat::kJson;
  fmt::print("{}", as_json ? JsonText(YamlToJson(yaml)) : yaml);
  return static_cast<int>(ExitCode::kOk);
}

int ConfigSchemaCommand() {
  fmt::print("{}", JsonText(ConfigSchema()));
  return static_cast<int>(ExitCode::kOk);
}

namespace {

using Json = nlohmann::ordered_json;

Json ErrorsJson(const std::vector<Diagnostic>& diagnostics) {
  Json errors = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    errors.push_back({{"file", diagnostic.source.file},
                      {"line", diagnostic.source.line},
                      {"column", diagnostic.source.column},
                      {"message", diagnostic.message}});
  }
  return errors;
}

}  // namespace

int ValidateCommand(const ValidateArguments& arguments) {
  const bool as_json = arguments.format == OutputFormat::kJson;
  const auto loaded = LoadConfig(arguments.config);
  if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&loaded)) {
    PrintDiagnostics(*diagnostics);
    const Json answer = {{"valid", false}, {"errors", ErrorsJson(*diagnostics)}};
    if (as_json) fmt::print("{}", JsonText(answer));
    return static_cast<int>(ConfigFailureCode(arguments.config.path, arguments.config.overrides));
  }
  const RunSpec& spec = std::get<RunSpec>(loaded);
  const RunPlan plan = *PlanRun(spec);  // LoadConfig made sure that there is one.
  const std::vector<std::string> warnings = LearningWarnings(spec);
  for (const std::string& warning : warnings) {
    WriteToStderr(fmt::format("{}: warning: {}\n", arguments.config.path, warning));
  }
  const Json answer = {{"valid", true},
                       {"errors", Json::array()},
                       {"warnings", warnings},
                       {"plan", PlanJson(spec, plan)}};
  fmt::print("{}", as_json ? JsonText(answer) : PlanText(spec, plan));
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace slipstream
