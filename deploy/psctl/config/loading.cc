#include "deploy/psctl/config/loading.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "common/config/run_config.h"
#include "common/process/environment.h"
#include "common/process/output_text.h"
#include "deploy/psctl/config/run_plan.h"

namespace slipstream {
namespace {

Overrides OverridesOf(const ConfigArguments& arguments) {
  Overrides overrides;
  overrides.set = arguments.overrides;
  overrides.environment = EnvironmentMap(environ);
  return overrides;
}

}  // namespace

void PrintDiagnostics(const std::vector<Diagnostic>& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics) WriteToStderr(diagnostic.ToString() + "\n");
  if (diagnostics.size() > 1) WriteToStderr(fmt::format("{} errors\n", diagnostics.size()));
}

std::variant<RunSpec, std::vector<Diagnostic>> LoadConfig(const ConfigArguments& arguments) {
  ConfigResult result = LoadRunConfig(arguments.path, OverridesOf(arguments));
  if (const auto* spec = std::get_if<RunSpec>(&result)) {
    const absl::StatusOr<RunPlan> plan = PlanRun(*spec);
    if (!plan.ok()) {
      return std::vector<Diagnostic>{
          {.source = {.file = arguments.path}, .message = std::string(plan.status().message())}};
    }
  }
  return result;
}

std::variant<RunSpec, ExitCode> LoadConfigOrComplain(const ConfigArguments& arguments) {
  auto loaded = LoadConfig(arguments);
  if (auto* spec = std::get_if<RunSpec>(&loaded)) return std::move(*spec);
  PrintDiagnostics(std::get<std::vector<Diagnostic>>(loaded));
  return ConfigFailureCode(arguments.path, arguments.overrides);
}

}  // namespace slipstream
