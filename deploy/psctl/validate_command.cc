#include "deploy/psctl/validate_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "common/json/json_text.h"
#include "common/process/exit_code.h"
#include "deploy/psctl/config_loading.h"
#include "deploy/psctl/run_plan.h"

namespace slipstream {
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
  const Json answer = {{"valid", true}, {"errors", Json::array()}, {"plan", PlanJson(spec, plan)}};
  fmt::print("{}", as_json ? JsonText(answer) : PlanText(spec, plan));
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace slipstream
