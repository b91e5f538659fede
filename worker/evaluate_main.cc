// ps_evaluate measures the quality of a saved model. psctl evaluate starts it; it needs no server.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/config/run_config.h"
#include "common/config/unexpected_arguments.h"
#include "common/json/json_text.h"
#include "common/model_file/model_file.h"
#include "common/process/environment.h"
#include "common/process/exit_code.h"
#include "common/process/guarded_main.h"
#include "common/process/output_text.h"
#include "common/process/version.h"
#include "worker/training/saved_model.h"

namespace slipstream {
namespace {

constexpr char kExamples[] = R"(Examples:
  ps_evaluate --model runs/demo/model.safetensors
  ps_evaluate --model model.safetensors --set data.path=/data/fashion-mnist -o json

Exit codes: 0 measured; 1 internal error; 2 wrong flags; 74 model or data cannot be read; 78 wrong
settings, or the model of another net.)";

struct CommandLine {
  std::string model;
  std::optional<std::string> config;
  Overrides overrides;
  std::string format = "table";
};

void AddFlags(CLI::App& app, CommandLine& line) {
  app.add_option("--model", line.model, "The model file (safetensors)")
      ->required()
      ->type_name("FILE");
  app.add_option("--config", line.config, "The run's settings (default: those in the file)")
      ->type_name("RUN.YAML");
  app.add_option("--set", line.overrides.set, "Overrides a setting; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("-o,--output", line.format, "How to print the result (table)")
      ->type_name("table|json")
      ->check(CLI::IsMember({"table", "json"}).description(""));
  app.set_version_flag("--version", VersionLine("ps_evaluate"));
  app.footer(kExamples);
}

std::string AccuracyText(const TestMeasures& measures) {
  if (!measures.accuracy) return "-";
  // Which class is the largest of values that are not finite is chance.
  return std::isfinite(measures.loss) ? fmt::format("{:.2f}%", 100 * *measures.accuracy)
                                      : "not finite";
}

nlohmann::ordered_json AccuracyJson(const TestMeasures& measures) {
  const bool is_there = measures.accuracy.has_value() && std::isfinite(measures.loss);
  return is_there ? nlohmann::ordered_json(*measures.accuracy) : nullptr;
}

std::string Text(const std::string& path, const ModelEvaluation& result) {
  return fmt::format(
      "model           {}\n"
      "run             {}\n"
      "test accuracy   {}\n"
      "test loss       {:.4f}\n"
      "data            {}\n"
      "examples        {}\n"
      "parameters      {}\n"
      "weights sha256  {}\n",
      path, result.name, AccuracyText(result.measures), result.measures.loss, result.data,
      result.examples, result.parameters, result.weights_sha256);
}

std::string ResultJson(const std::string& path, const ModelEvaluation& result) {
  const nlohmann::ordered_json json = {{"model", path},
                                       {"name", result.name},
                                       {"test_accuracy", AccuracyJson(result.measures)},
                                       {"test_loss", result.measures.loss},
                                       {"data", result.data},
                                       {"examples", result.examples},
                                       {"parameters", result.parameters},
                                       {"weights_sha256", result.weights_sha256}};
  return JsonText(json);
}

absl::StatusOr<ModelEvaluation> Evaluate(const CommandLine& line) {
  const absl::StatusOr<ModelFile> file = ModelFile::Open(line.model);
  if (!file.ok()) return file.status();
  const absl::StatusOr<RunSpec> settings =
      SettingsOf(*file, line.model, line.config, line.overrides);
  if (!settings.ok()) return settings.status();
  return EvaluateModel(*file, *settings);
}

int Main(int argc, char** argv) {
  CommandLine line;
  CLI::App app("Measures a saved model on its test set.", "ps_evaluate");
  AddFlags(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_answer = ReportParseError(app, error, argc, argv, TakesSettings::kThisProgram);
    return static_cast<int>(is_answer ? ExitCode::kOk : ExitCode::kUsage);
  }
  line.overrides.environment = EnvironmentMap(environ);
  const absl::StatusOr<ModelEvaluation> result = Evaluate(line);
  if (!result.ok()) {
    WriteToStderr("ps_evaluate: error: " + std::string(result.status().message()) + "\n");
    return static_cast<int>(ExitCodeFor(result.status()));
  }
  fmt::print("{}",
             line.format == "json" ? ResultJson(line.model, *result) : Text(line.model, *result));
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  return slipstream::GuardedMain("ps_evaluate", [&] { return slipstream::Main(argc, argv); });
}
