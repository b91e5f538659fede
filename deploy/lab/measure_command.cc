#include "deploy/lab/measure_command.h"

#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/config/run_config.h"
#include "common/config/unexpected_arguments.h"
#include "common/json/json_text.h"
#include "common/model/net_shapes.h"
#include "common/process/environment.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/steady_time.h"
#include "deploy/lab/compute_costs.h"
#include "deploy/lab/local_link.h"
#include "deploy/lab/update_costs.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

int Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

Json LinkJson(const LocalLink& link) {
  return {{"latency", link.latency},
          {"bytes_per_second", link.bytes_per_second},
          {"message", link.message}};
}

/// Measures everything in about `budget`, half of it for computing.
absl::StatusOr<Json> Measure(const RunSpec& run, absl::Duration budget) {
  if (run.model_from != SuppliedBy::kSettings) {
    return absl::InvalidArgumentError(
        "model.from: the workers bring the model, so that its steps cannot be measured here");
  }
  const absl::Time begin = SteadyNow();
  const absl::StatusOr<ComputeCosts> compute = MeasureCompute(run, budget / 2);
  if (!compute.ok()) return compute.status();
  const size_t parameters = std::get<NetShapes>(InferShapes(run.model)).layout.parameters();
  const UpdateCosts update = MeasureUpdates(run, parameters, budget / 10);
  const absl::StatusOr<LocalLink> local =
      MeasureSharedMemory(parameters * sizeof(float), budget / 6);
  if (!local.ok()) return local.status();
  const absl::StatusOr<LocalLink> loopback = MeasureLoopback(budget / 6);
  if (!loopback.ok()) return loopback.status();

  Json batches = Json::array();
  for (const ComputeCosts::Point& point : compute->points) {
    batches.push_back({{"batch_size", point.batch_size}, {"seconds", point.seconds}});
  }
  return Json{{"compute",
               {{"fixed", compute->fixed},
                {"per_example", compute->per_example},
                {"spread", compute->spread},
                {"processor_share", compute->processor_share},
                {"batches", std::move(batches)}}},
              {"update", {{"rule", update.rule}, {"fold", update.fold}}},
              {"local", LinkJson(*local)},
              {"loopback", LinkJson(*loopback)},
              {"processors", Processors()},
              {"seconds", absl::ToDoubleSeconds(SteadyNow() - begin)}};
}

}  // namespace

int MeasureCommand(int argc, char** argv) {
  std::string path;
  Overrides overrides;
  double seconds = 6;
  CLI::App app("Measures what a run costs on this machine, and prints it as JSON.",
               "ps_lab measure");
  app.add_option("config", path, "The run's configuration")->type_name("RUN.YAML")->required();
  app.add_option("--set", overrides.set, "Overrides one setting; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--seconds", seconds, "How long to measure, about (6)")
      ->check(CLI::Range(0.01, 30.0));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_answer = ReportParseError(app, error, argc, argv, TakesSettings::kThisProgram);
    return static_cast<int>(is_answer ? ExitCode::kOk : ExitCode::kUsage);
  }
  overrides.environment = EnvironmentMap(environ);
  const ConfigResult loaded = LoadRunConfig(path, overrides);
  if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&loaded)) {
    WriteToStderr(ToString(*diagnostics) + "\n");
    return static_cast<int>(ConfigFailureCode(path, overrides.set));
  }
  const absl::StatusOr<Json> measured = Measure(std::get<RunSpec>(loaded), absl::Seconds(seconds));
  if (!measured.ok()) {
    WriteToStderr("ps_lab: error: " + std::string(measured.status().message()) + "\n");
    return static_cast<int>(ExitCodeFor(measured.status()));
  }
  WriteToStdout(JsonText(*measured));
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace slipstream
