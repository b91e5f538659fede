#include "deploy/lab/run_command.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/config/run_config.h"
#include "common/config/run_text.h"
#include "common/config/unexpected_arguments.h"
#include "common/config/yaml_tree.h"
#include "common/files/whole_file.h"
#include "common/json/json_text.h"
#include "common/log/logging.h"
#include "common/process/environment.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/stop_signal.h"
#include "deploy/lab/virtual_run.h"
#include "deploy/lab/world_spec.h"
#include "deploy/psctl/run/directory.h"
#include "deploy/psctl/run/metrics_log.h"
#include "deploy/psctl/status/progress_view.h"
#include "deploy/psctl/status/run_summary.h"
#include "worker/data/load_data.h"
#include "worker/data/model_fit.h"
#include "worker/training/model_shapes.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFooter[] = R"(Examples:
  ps_lab run run.yaml --run-dir /tmp/cell
  ps_lab run run.yaml --set cluster.workers=30 --world world.yaml --threads 2 --run-dir /tmp/cell

The run takes place in virtual time, which world.yaml describes, with real gradients. It does not
depend on --threads.

Exit codes: 0 trained; 2 wrong flags; 74 a file cannot be read or written; 78 wrong settings; 80 the
run failed; 81 training diverged; 130, 143 stopped by a signal.)";

/// Returns how many moments of a run metrics.jsonl has, about: with many workers fewer, as each
/// costs a look at all of them.
uint64_t MomentsOf(const RunSpec& run) {
  return std::clamp<uint64_t>(12'000 / run.cluster.workers, 40, 400);
}

struct Arguments {
  std::string config;
  std::vector<std::string> set;
  std::string world;
  std::string run_dir;
  uint32_t threads = 1;
};

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

/// A run in virtual time as a process: its files, its progress and its end.
class VirtualProgram {
 public:
  VirtualProgram(const Arguments& arguments, const StopSignal& stop)
      : arguments_(arguments), stop_(stop) {}

  int Run() {
    const absl::Status status = Train();
    if (stop_.stopped()) return stop_.ExitStatus();
    if (status.ok()) return static_cast<int>(ExitCode::kOk);
    WriteToStderr(fmt::format("ps_lab: error: {}\n", std::string(status.message())));
    return static_cast<int>(ExitCodeFor(status));
  }

 private:
  absl::Status Train() {
    absl::StatusOr<RunSpec> run = ToStatusOr(LoadRunConfig(
        arguments_.config, {.set = arguments_.set, .environment = EnvironmentMap(environ)}));
    if (!run.ok()) return run.status();
    absl::StatusOr<WorldSpec> world = WorldSpec();
    if (!arguments_.world.empty()) world = ReadWorldFile(arguments_.world);
    if (!world.ok()) return world.status();
    absl::StatusOr<RunDirectory> directory =
        RunDirectory::Create(arguments_.run_dir, run->name, absl::Now());
    if (!directory.ok()) return directory.status();
    directory_.emplace(*std::move(directory));
    absl::Status status = TrainIn(*run, *world);
    if (!has_begun_) directory_->GiveUp();
    return status;
  }

  absl::Status TrainIn(const RunSpec& run, const WorldSpec& world) {
    absl::StatusOr<DataSplits> data = LoadData(run.data, run.model, run.seed);
    if (!data.ok()) return data.status();
    const absl::StatusOr<NetShapes> shapes = ShapesOf(run.model);
    if (!shapes.ok()) return shapes.status();
    if (absl::Status fits = FitToModel(*shapes, *data); !fits.ok()) return fits;
    absl::StatusOr<std::unique_ptr<VirtualRun>> made = VirtualRun::Make(
        {.run = run, .world = world, .threads = arguments_.threads, .save_dir = directory_->path()},
        *data);
    if (!made.ok()) return made.status();
    has_begun_ = true;
    run_ = std::move(*made);
    absl::Status written = WriteWholeFile(directory_->ConfigPath(), ToYaml(run));
    if (written.ok() && !arguments_.world.empty()) written = CopyWorld();
    if (!written.ok()) return written;
    metrics_.emplace(directory_->MetricsPath());
    moments_max_ = MomentsOf(run);
    loaded_after_ = CpuSeconds();
    const absl::Status ran = run_->Run([this] { return GoesOn(); });
    return End(ran, run.name);
  }

  absl::Status CopyWorld() {
    const absl::StatusOr<std::string> text = ReadYamlFile(arguments_.world);
    if (!text.ok()) return text.status();
    return WriteWholeFile(directory_->path() + "/world.yaml", *text);
  }

  /// Notes how far the run is. Returns false if it is to stop.
  bool GoesOn() {
    if (stop_.stopped()) return false;
    const uint64_t done = run_->batches_done();
    const uint64_t moments =
        run_->batches_total() == 0 ? 0 : done * moments_max_ / run_->batches_total();
    const absl::Time now = absl::Now();
    const bool is_due = now - told_ > absl::Seconds(1);
    if (moments == moments_ && !is_due) return true;
    const v1::RunStatus status = run_->Status();
    if (moments != std::exchange(moments_, moments)) Note(status);
    if (is_due) {
      told_ = now;
      WriteToStderr(fmt::format("{}  virtual {}\n", FormatProgress(status),
                                absl::FormatDuration(absl::Trunc(Elapsed(), absl::Seconds(1)))));
    }
    return true;
  }

  absl::Duration Elapsed() const { return run_->now() - absl::UnixEpoch(); }

  void Note(const v1::RunStatus& status) { noted_.Update(metrics_->Add(Elapsed(), status)); }

  absl::Status End(const absl::Status& ran, const std::string& name) {
    v1::RunStatus status = run_->Status();
    status.set_name(name);
    Note(status);
    absl::Status ended = ran;
    ended.Update(noted_);
    ended.Update(FailureOf(status));
    const bool was_stopped = stop_.stopped();
    const int code = was_stopped ? stop_.ExitStatus() : static_cast<int>(ExitCodeFor(ended));
    std::string ended_by;
    if (!ended.ok()) ended_by = was_stopped ? "interrupted" : "failed";
    Json summary = SummaryJson(status, directory_->path(),
                               {.ended_by = ended_by,
                                .error = std::string(ended.message()),
                                .exit_code = code,
                                .models = ModelsOf(status, directory_->Models())});
    ended.Update(WriteWholeFile(directory_->SummaryPath(), JsonText(WithVirtualTime(summary))));
    return ended;
  }

  /// Returns which processor time went where: `rest` is the bookkeeping of servers, workers and
  /// network.
  Json CpuJson() const {
    const double total = CpuSeconds();
    const double compute = absl::ToDoubleSeconds(run_->computed());
    return {{"total", total},
            {"load", loaded_after_},
            {"compute", compute},
            {"rest", total - loaded_after_ - compute}};
  }

  /// Returns the summary with names that say which times are virtual.
  Json WithVirtualTime(const Json& summary) const {
    Json made = Json::object();
    for (const auto& [key, value] : summary.items()) {
      if (key == "name") {
        made[key] = value;
        made["engine"] = "virtual";
      } else if (key == "seconds") {
        made["virtual_seconds"] = value;
        made["cpu_seconds"] = CpuJson();
        made["events"] = run_->events();
      } else if (key == "examples_per_second") {
        const double seconds =
            summary["seconds"].is_number() ? summary["seconds"].get<double>() : 0;
        made["examples_per_virtual_second"] =
            seconds > 0 ? Json(summary["examples"].get<double>() / seconds) : Json();
      } else {
        made[key] = value;
      }
    }
    return made;
  }

  const Arguments& arguments_;
  const StopSignal& stop_;
  std::optional<RunDirectory> directory_;
  bool has_begun_ = false;
  std::unique_ptr<VirtualRun> run_;
  std::optional<MetricsLog> metrics_;
  absl::Status noted_;
  double loaded_after_ = 0;  // Processor time.
  absl::Time told_ = absl::Now();
  uint64_t moments_ = 0;  // Of those that metrics.jsonl has.
  uint64_t moments_max_ = 0;
};

}  // namespace

int RunVirtualCommand(int argc, char** argv) {
  const StopSignal stop;
  Arguments arguments;
  CLI::App app("Trains in virtual time", "ps_lab run");
  app.add_option("config", arguments.config, "The run.yaml")->required()->type_name("RUN.yaml");
  app.add_option("--set", arguments.set, "A setting of the run")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--world", arguments.world, "The machines and the network")
      ->type_name("WORLD.yaml");
  app.add_option("--run-dir", arguments.run_dir, "Where the run's files go")
      ->required()
      ->type_name("DIR");
  app.add_option("--threads", arguments.threads, "Threads that compute")
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
  return VirtualProgram(arguments, stop).Run();
}

}  // namespace slipstream
