#include "deploy/lab/replay_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "common/config/run_config.h"
#include "common/config/run_text.h"
#include "common/config/unexpected_arguments.h"
#include "common/json/json_number.h"
#include "common/json/json_text.h"
#include "common/log/logging.h"
#include "common/model_file/weights_digest.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/stop_signal.h"
#include "deploy/lab/replay.h"
#include "worker/data/load_data.h"
#include "worker/data/model_fit.h"
#include "worker/training/model_shapes.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFooter[] = R"(Examples:
  psctl run run.yaml --push-log --run-dir runs/one
  psctl lab replay runs/one
  psctl lab replay runs/one --set optimizer.staleness_scaling=per_gradient

Exit codes: 0 the weights are the run's, or other settings were asked for; 1 they are not; 2 wrong
flags; 74 a file cannot be read; 75 the run cannot be replayed; 78 wrong settings; 81 with the other
settings it diverges; 130, 143 stopped by a signal.)";

struct Arguments {
  std::string directory;
  std::vector<std::string> set;
  uint32_t threads = 1;
};

/// Returns the summary of the run; an empty object if there is none.
Json SummaryOf(const std::string& directory) {
  std::ifstream file(directory + "/summary.json");
  Json summary = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  return summary.is_object() ? summary : Json::object();
}

/// Checks that only settings of the optimizer are others than the run's.
absl::Status CheckChanges(const std::string& directory, const RunSpec& changed) {
  absl::StatusOr<RunSpec> own = ToStatusOr(LoadRunConfig(directory + "/run.yaml"));
  if (!own.ok()) return own.status();
  own->optimizer = changed.optimizer;
  const std::optional<std::string> difference = FirstDifference(changed, *own);
  if (!difference.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(*difference +
                                    ": a replay has the events of the run; only settings of the "
                                    "optimizer can be others");
}

absl::StatusOr<Json> Redo(const Arguments& arguments, const StopSignal& stop) {
  absl::StatusOr<RunSpec> run =
      ToStatusOr(LoadRunConfig(arguments.directory + "/run.yaml", {.set = arguments.set}));
  if (!run.ok()) return run.status();
  if (absl::Status fits = CheckChanges(arguments.directory, *run); !fits.ok()) return fits;
  Replay::Options options = {.run = *run, .threads = arguments.threads};
  for (size_t i = 0; i < run->cluster.servers.size(); ++i) {
    auto log = ReadPushLog(fmt::format("{}/push-log-{}.csv", arguments.directory, i));
    if (!log.ok()) return log.status();
    options.logs.push_back(*std::move(log));
  }
  if (absl::Status can = Replay::Check(options); !can.ok()) return can;
  const absl::StatusOr<NetShapes> shapes = ShapesOf(run->model);
  if (!shapes.ok()) return shapes.status();
  absl::StatusOr<DataSplits> data = LoadData(run->data, run->model, run->seed);
  if (!data.ok()) return data.status();
  if (absl::Status fits = FitToModel(*shapes, *data); !fits.ok()) return fits;
  absl::StatusOr<std::unique_ptr<Replay>> replay = Replay::Make(std::move(options), *data);
  if (!replay.ok()) return replay.status();
  absl::Time told = absl::Now();
  const absl::StatusOr<Replay::Result> result =
      (*replay)->Run([&told, &stop](uint64_t done, uint64_t lines) {
        if (const absl::Time now = absl::Now(); now - told > absl::Seconds(1)) {
          told = now;
          WriteToStderr(fmt::format("replayed {} of {} lines\n", done, lines));
        }
        return !stop.stopped();
      });
  if (!result.ok()) return result.status();
  Json versions = Json::array();
  for (const Version version : result->versions) versions.push_back(Value(version));
  const bool has_accuracy = result->measures.has_value() && result->measures->accuracy.has_value();
  const std::string sha256 = WeightsSha256(result->weights);
  const Json summary = SummaryOf(arguments.directory);
  const Json of_run = summary.value("weights_sha256", Json());
  return Json{
      {"run_dir", arguments.directory},
      {"changed", arguments.set},
      {"pushes", result->pushes},
      {"staleness_mean", NumberOrNull(result->mean_staleness)},
      {"versions", std::move(versions)},
      {"test_accuracy", has_accuracy ? NumberOrNull(*result->measures->accuracy) : Json()},
      {"run_test_accuracy", summary.value("test_accuracy", Json())},
      {"test_loss", result->measures.has_value() ? NumberOrNull(result->measures->loss) : Json()},
      {"weights_sha256", sha256},
      {"run_sha256", of_run},
      {"equal", of_run.is_null() ? Json() : Json(of_run == sha256)}};
}

}  // namespace

int ReplayCommand(int argc, char** argv) {
  const StopSignal stop;
  Arguments arguments;
  CLI::App app("Redoes a run from its push logs, bit for bit.", "ps_lab replay");
  app.add_option("run_dir", arguments.directory, "The directory that the run has left")
      ->required()
      ->type_name("RUN_DIR");
  app.add_option("--set", arguments.set, "Asks what another setting would have done")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--threads", arguments.threads, "Threads that compute (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_answer = ReportParseError(app, error, argc, argv, TakesSettings::kThisProgram);
    return static_cast<int>(is_answer ? ExitCode::kOk : ExitCode::kUsage);
  }
  StartLogging({.role = "lab"}, LogSpec::Level::kWarning, LogSpec::Format::kText);
  const absl::StatusOr<Json> redone = Redo(arguments, stop);
  if (stop.stopped()) return stop.ExitStatus();
  if (!redone.ok()) {
    WriteToStderr(fmt::format("ps_lab: error: {}\n", std::string(redone.status().message())));
    return static_cast<int>(ExitCodeFor(redone.status()));
  }
  WriteToStdout(JsonText(*redone));
  if (!arguments.set.empty()) return static_cast<int>(ExitCode::kOk);
  const Json& equal = (*redone)["equal"];
  if (equal.is_null()) {
    WriteToStderr("ps_lab: error: summary.json has no weights_sha256 to compare with\n");
    return static_cast<int>(ExitCode::kTemporary);
  }
  return static_cast<int>(equal.get<bool>() ? ExitCode::kOk : ExitCode::kInternal);
}

}  // namespace slipstream
