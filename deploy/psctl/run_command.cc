#include "deploy/psctl/run_command.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "common/config/run_text.h"
#include "common/process/exit_code.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/cluster.h"
#include "deploy/psctl/config_loading.h"
#include "deploy/psctl/failure_report.h"
#include "deploy/psctl/metrics_log.h"
#include "deploy/psctl/program_locations.h"
#include "deploy/psctl/progress_printer.h"
#include "deploy/psctl/root_cause.h"
#include "deploy/psctl/run_directory.h"
#include "deploy/psctl/run_summary.h"
#include "deploy/psctl/run_watch.h"
#include "deploy/psctl/yaml_json.h"

namespace slipstream {
namespace {

constexpr size_t kLogLinesMax = 5;

int ExitWith(const absl::Status& status) {
  return static_cast<int>(Complain(ExitCodeFor(status), std::string(status.message())));
}

/// One run of a cluster, from its start to its end.
class LocalRun {
 public:
  LocalRun(const RunArguments& arguments, const RunSpec& spec, ProgramPaths programs,
           RunDirectory directory, const StopSignal& stop)
      : arguments_(arguments),
        round_size_(RoundSize(spec.consistency, spec.cluster.workers)),
        start_timeout_(spec.cluster.start_timeout),
        stop_(stop),
        directory_(std::move(directory)),
        metrics_(directory_.MetricsPath()),
        progress_(spec.training.epochs),
        cluster_({.programs = std::move(programs),
                  .servers = static_cast<uint32_t>(spec.cluster.servers.size()),
                  .workers = spec.cluster.workers,
                  .start_timeout = start_timeout_},
                 directory_, stop) {}

  int Run() {
    const absl::Status started = cluster_.Start();
    RunWatch::Result result;
    if (started.ok()) {
      result = RunWatch(cluster_, stop_, metrics_, progress_, start_timeout_).Watch();
    }
    progress_.ClearBar();
    const bool failed_to_start = !started.ok() && cluster_.ends().empty();
    if (!started.ok() && !failed_to_start) result.verdict = Verdict::kProcessFailed;
    cluster_.Stop(absl::Seconds(arguments_.stop_timeout_seconds));

    if (result.verdict == Verdict::kFinished) return Finish(std::move(result.status));
    if (stop_.stopped()) return TellOfStop();
    return failed_to_start ? ExitWith(started) : Fail(result);
  }

 private:
  int Finish(v1::RunStatus status);
  int TellOfStop();
  int Fail(const RunWatch::Result& result);

  const RunArguments& arguments_;
  const uint32_t round_size_;
  const absl::Duration start_timeout_;
  const StopSignal& stop_;
  const RunDirectory directory_;
  MetricsLog metrics_;
  ProgressPrinter progress_;
  Cluster cluster_;
};

int LocalRun::Finish(v1::RunStatus status) {
  // The status tells of the current view, and all workers have left; the run had this many.
  status.set_round_size(round_size_);
  for (const ProcessEnd& end : cluster_.ends()) {
    if (MeaningOf(end) != EndMeaning::kFailure) continue;
    progress_.Note(fmt::format("psctl: warning: after the run, {} ended with {}; log: {}",
                               end.name.Text(), end.HowText(), directory_.LogPath(end.name)));
  }
  const nlohmann::ordered_json summary = SummaryJson(status, directory_.path());
  const std::string json = summary.dump(2) + "\n";
  switch (arguments_.format) {
    case OutputFormat::kTable:
      fmt::print("{}", SummaryText(status, directory_.path()));
      break;
    case OutputFormat::kJson:
      fmt::print("{}", json);
      break;
    case OutputFormat::kYaml:
      fmt::print("{}", JsonToYaml(summary));
      break;
  }
  const absl::Status saved = WriteWholeFile(directory_.SummaryPath(), json);
  return saved.ok() ? static_cast<int>(ExitCode::kOk) : ExitWith(saved);
}

int LocalRun::TellOfStop() {
  progress_.Note(fmt::format("psctl: stopped by signal {} ({}); what there is lies in {}",
                             stop_.signal(), strsignal(stop_.signal()), directory_.path()));
  return stop_.ExitStatus();
}

int LocalRun::Fail(const RunWatch::Result& result) {
  FailureEvidence evidence = {.verdict = result.verdict,
                              .coordinator_says = result.status.failure(),
                              .phase = result.status.phase(),
                              .start_timeout = start_timeout_,
                              .log_path = directory_.LogPath({Role::kServer, 0}),
                              .log_lines = {}};
  if (const ProcessEnd* cause = FindRootCause(cluster_.ends())) {
    evidence.log_path = directory_.LogPath(cause->name);
  }
  evidence.log_lines = LastErrorLines(evidence.log_path, kLogLinesMax);
  const FailureReport report = DescribeFailure(cluster_.ends(), evidence);
  fmt::print(stderr, "{}", report.text);
  return static_cast<int>(report.exit_code);
}

}  // namespace

int RunCommand(const RunArguments& arguments) {
  auto loaded = LoadConfigOrComplain(arguments.config);
  if (const auto* code = std::get_if<ExitCode>(&loaded)) return static_cast<int>(*code);
  RunSpec& spec = std::get<RunSpec>(loaded);
  absl::StatusOr<ProgramPaths> programs = FindPrograms(arguments.bin_dir);
  if (!programs.ok()) return ExitWith(programs.status());

  const StopSignal stop;
  absl::StatusOr<RunDirectory> directory =
      RunDirectory::Create(arguments.run_dir, spec.name, absl::Now());
  if (!directory.ok()) return ExitWith(directory.status());
  if (arguments.push_log) spec.log.push_log = directory->path();
  const absl::Status written = WriteWholeFile(directory->ConfigPath(), ToYaml(spec));
  if (!written.ok()) return ExitWith(written);

  fmt::print(stderr, "psctl: {} server{} and {} worker{}; run directory {}\n",
             spec.cluster.servers.size(), spec.cluster.servers.size() == 1 ? "" : "s",
             spec.cluster.workers, spec.cluster.workers == 1 ? "" : "s", directory->path());
  return LocalRun(arguments, spec, *std::move(programs), *std::move(directory), stop).Run();
}

}  // namespace slipstream
