#include "deploy/psctl/run/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/clock.h"
#include "common/alarms/run_alarms.h"
#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/config/diagnostic.h"
#include "common/config/run_text.h"
#include "common/config/server_address.h"
#include "common/files/whole_file.h"
#include "common/json/json_text.h"
#include "common/log/log.h"
#include "common/log/logging.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/process_limits.h"
#include "common/process/stop_signal.h"
#include "common/settings/learning_warnings.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/config/loading.h"
#include "deploy/psctl/config/run_plan.h"
#include "deploy/psctl/config/yaml_json.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/prediction/summary_plan.h"
#include "deploy/psctl/run/cluster.h"
#include "deploy/psctl/run/directory.h"
#include "deploy/psctl/run/failure_report.h"
#include "deploy/psctl/run/metrics_log.h"
#include "deploy/psctl/run/process_plan.h"
#include "deploy/psctl/run/program_locations.h"
#include "deploy/psctl/run/progress_printer.h"
#include "deploy/psctl/run/restart_policy.h"
#include "deploy/psctl/run/root_cause.h"
#include "deploy/psctl/run/watch.h"
#include "deploy/psctl/run/watch_command.h"
#include "deploy/psctl/run/worker_program.h"
#include "deploy/psctl/status/divergence.h"
#include "deploy/psctl/status/progress_view.h"
#include "deploy/psctl/status/run_summary.h"

namespace slipstream {
namespace {

constexpr size_t kLogLinesMax = 5;

/// Prints a line to stderr, where progress is shown, too; with `as_json`, logs it.
void Tell(bool as_json, const std::string& line) {
  if (as_json) return LogInfo(line);
  WriteToStderr("psctl: " + line + "\n");
}

void Warn(bool as_json, const std::string& line) {
  if (as_json) return LogWarning(line);
  WriteToStderr("psctl: warning: " + line + "\n");
}

/// Returns whether `server`, host:port, may be on another machine.
bool IsElsewhere(const std::string& server) {
  const std::optional<ServerAddress> address = ParseServerAddress(server);
  return address.has_value() && !address->IsLoopback();
}

/// Reports which processes are about to start. Warns of settings that are known not to learn, and
/// if cluster.servers names another machine, because all of them start on this one.
void TellOfStart(const RunSpec& spec, const std::string& run_dir) {
  const bool as_json = spec.log.format == LogSpec::Format::kJson;
  const std::vector<std::string>& servers = spec.cluster.servers;
  const size_t aggregators = spec.cluster.groups() * servers.size();
  const std::string between =
      aggregators == 0 ? ""
                       : fmt::format(", {} aggregator{}", aggregators, aggregators == 1 ? "" : "s");
  Tell(as_json, fmt::format("{} server{}{} and {} worker{}; run directory {}", servers.size(),
                            servers.size() == 1 ? "" : "s", between, spec.cluster.workers,
                            spec.cluster.workers == 1 ? "" : "s", run_dir));
  for (const std::string& warning : LearningWarnings(spec)) Warn(as_json, warning);
  if (const std::string lack = MemoryWarning(spec); !lack.empty()) Warn(as_json, lack);
  const auto elsewhere = std::ranges::find_if(servers, IsElsewhere);
  if (elsewhere == servers.end()) return;
  Warn(as_json, fmt::format("psctl run starts all servers on this machine, none at {}; "
                            "cluster.servers only says how many",
                            *elsewhere));
}

/// Reports to scripts, on stdout, a run without a summary. Returns `exit_code`.
int EndWithError(OutputFormat format, const std::string& error, int exit_code,
                 const std::string& run_dir) {
  const nlohmann::ordered_json failure = FailureJson(error, exit_code, run_dir);
  if (format == OutputFormat::kJson) WriteToStdout(JsonText(failure));
  if (format == OutputFormat::kYaml) WriteToStdout(JsonToYaml(failure));
  return exit_code;
}

int EndWithStatus(OutputFormat format, const absl::Status& status, const std::string& run_dir) {
  const std::string message(status.message());
  const ExitCode code = Complain(ExitCodeFor(status), message);
  return EndWithError(format, message, static_cast<int>(code), run_dir);
}

int EndWithDiagnostics(const RunArguments& arguments, const std::vector<Diagnostic>& diagnostics) {
  PrintDiagnostics(diagnostics);
  std::string error;
  for (const Diagnostic& diagnostic : diagnostics) {
    error += (error.empty() ? "" : "\n") + diagnostic.ToString();
  }
  const ExitCode code = ConfigFailureCode(arguments.config.path, arguments.config.overrides);
  return EndWithError(arguments.format, error, static_cast<int>(code), "");
}

/// Returns OK if the final weights were saved or did not need to be, and else DATA_LOSS: the
/// servers, which held the weights, have ended.
absl::Status ModelSaved(const v1::RunStatus& status) {
  const v1::EvaluationStatus* deciding = DecidingEvaluation(status);
  if (deciding == nullptr || deciding->model_failure().empty()) return absl::OkStatus();
  return absl::DataLossError("the trained weights were not saved: " + deciding->model_failure());
}

/// Returns DATA_LOSS if a push log lacks pushes.
absl::Status PushLogsWhole(const v1::RunStatus& status) {
  for (const v1::ShardStatus& shard : status.shards()) {
    if (shard.push_log_failure().empty()) continue;
    return absl::DataLossError(fmt::format("{}; the weights and the figures of the run are whole",
                                           Printable(shard.push_log_failure())));
  }
  return absl::OkStatus();
}

/// Returns DATA_LOSS if a server's last checkpoint could not be written before it ended.
absl::Status CheckpointsSaved(const std::vector<std::string>& lost) {
  if (lost.empty()) return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("{}; the figures of the run are whole", Printable(lost.front())));
}

/// Returns how far the run had come when somebody asked to stop.
std::string ReachedText(const v1::RunStatus& status) {
  if (status.phase() < v1::TRAINING) return "before training had begun";
  return fmt::format("in epoch {}, after {} updates", CurrentEpoch(status), status.updates());
}

/// One run of a cluster, from its start to its end.
class LocalRun {
 public:
  LocalRun(const RunArguments& arguments, const RunSpec& spec, RestartScope restart,
           ProgramPaths programs, std::vector<std::string> worker_command,
           std::shared_ptr<grpc::ChannelCredentials> credentials, RunDirectory directory,
           const StopSignal& stop)
      : arguments_(arguments),
        is_json_(spec.log.format == LogSpec::Format::kJson),
        start_timeout_(spec.cluster.start_timeout),
        waits_for_lost_(spec.cluster.on_worker_loss == ClusterSpec::OnWorkerLoss::kWait),
        security_(spec.security),
        name_(spec.name),
        has_push_logs_(!spec.log.push_log.empty()),
        checkpoints_(spec.durability.saves() ? spec.durability.directory : ""),
        is_measured_(spec.evaluation.by == EvaluationSpec::By::kWorkers),
        has_own_program_(!worker_command.empty()),
        finish_timeout_(FinishTimeout(spec, has_own_program_)),
        credentials_(std::move(credentials)),
        stop_(stop),
        directory_(std::move(directory)),
        metrics_(directory_.MetricsPath()),
        progress_(spec.log.format),
        cluster_({.programs = std::move(programs),
                  .processes = ProcessesOf(0, spec.cluster, {&spec.cluster.workers, 1}),
                  .server_settings = {"run.after=stay"},
                  .worker_command = std::move(worker_command),
                  .worker_log_format = spec.log.format,
                  .security = spec.security,
                  .restart = {.scope = restart, .starts_max = arguments.restart_max},
                  .start_timeout = start_timeout_},
                 directory_, stop) {}

  int Run() {
    const absl::Status started = cluster_.Start();
    RunWatch::Result result;
    if (started.ok()) {
      Tell(is_json_,
           fmt::format("coordinator {}: {}", cluster_.coordinator(),
                       WatchCommand(arguments_.program, cluster_.coordinator(), security_)));
      result = Watch();
    }
    progress_.ClearBar();
    const bool failed_to_start = !started.ok() && cluster_.ends().empty();
    if (failed_to_start) result.is_preempted = stop_.signal() == SIGUSR1 && !checkpoints_.empty();
    const bool is_preempted = result.is_preempted && result.verdict == Verdict::kGoOn;
    if (is_preempted) cluster_.StopWorkers(arguments_.stop_timeout);
    if (!started.ok() && !failed_to_start) result.verdict = Verdict::kProcessFailed;
    cluster_.Stop(arguments_.stop_timeout);
    NoteLostFiles(result.status);

    const bool has_finished = result.status.phase() == v1::FINISHED;
    if (result.verdict == Verdict::kFinished || (stop_.stopped() && has_finished)) {
      return Finish(result);
    }
    if (is_preempted) return TellOfPreemption(result);
    if (stop_.stopped()) return TellOfStop(result);
    if (!failed_to_start) return Fail(result);
    const std::string message(started.message());
    const ExitCode code = Complain(ExitCodeFor(started), message);
    return EndWithSummary(result.status, EndOf("failed", message, static_cast<int>(code)));
  }

 private:
  RunWatch::Result Watch();

  /// Adds to the status the push logs that lack pushes, and the checkpoints that were not written,
  /// as servers reported by their exit codes, when they could no longer be asked.
  void NoteLostFiles(v1::RunStatus& status);

  int Finish(const RunWatch::Result& result);

  /// Returns DATA_LOSS if workers' programs were killed after the run, by psctl or by others: what
  /// they had yet to save is lost. ps_worker has nothing to save then, and must only end.
  absl::Status WorkersEnded(size_t ends_before_finish) const;
  int TellOfStop(const RunWatch::Result& result);
  int TellOfPreemption(const RunWatch::Result& result);
  int Fail(const RunWatch::Result& result);
  FailureReport ReportOf(const RunWatch::Result& result) const;

  RunEnd EndOf(std::string ended_by, std::string error, int exit_code) const {
    return {.ended_by = std::move(ended_by),
            .error = std::move(error),
            .log_lines = {},
            .exit_code = exit_code};
  }

  /// Returns a text such as "stopped by signal 2 (Interrupt)".
  std::string StopText() const;

  /// Returns the summary, after adding the run's name, its saved models, whether the push logs are
  /// complete, and what was to be expected.
  nlohmann::ordered_json Summarise(v1::RunStatus status, RunEnd end) const;

  /// Writes the summary of a run without final weights to its file, and to stdout unless the format
  /// is a table. Returns the exit code of the end.
  int EndWithSummary(const v1::RunStatus& status, const RunEnd& end) const;

  const RunArguments& arguments_;
  const bool is_json_;
  const absl::Duration start_timeout_;
  const bool waits_for_lost_;
  const SecuritySpec security_;
  const std::string name_;  // The run's name.
  const bool has_push_logs_;
  const std::string checkpoints_;  // The directory; empty if servers keep none.
  const bool is_measured_;
  const bool has_own_program_;
  const absl::Duration finish_timeout_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const StopSignal& stop_;
  const RunDirectory directory_;
  MetricsLog metrics_;
  ProgressPrinter progress_;
  Cluster cluster_;
  std::vector<std::string> lost_checkpoints_;  // Why servers ended without their last ones.
};

RunWatch::Result LocalRun::Watch() {
  // The summary is written as soon as somebody asks to stop, because a second signal ends this
  // process at once.
  const auto on_stop = [this](const v1::RunStatus& status) {
    const bool has_finished = status.phase() == v1::FINISHED;
    const RunEnd end = EndOf(has_finished ? "" : "interrupted",
                             StopText() + (has_finished ? "" : "; the weights were not saved"),
                             stop_.ExitStatus());
    (void)WriteWholeFile(directory_.SummaryPath(), JsonText(Summarise(status, end)));
  };
  return RunWatch(cluster_, stop_, metrics_, progress_,
                  {.start_timeout = start_timeout_,
                   .waits_for_lost = waits_for_lost_,
                   .save_timeout = arguments_.save_timeout,
                   .finish_timeout = finish_timeout_,
                   .is_measured = is_measured_,
                   .is_preemptible = !checkpoints_.empty(),
                   .on_stop = on_stop},
                  credentials_)
      .Watch();
}

void LocalRun::NoteLostFiles(v1::RunStatus& status) {
  for (const ProcessEnd& end : cluster_.ends()) {
    const int shard = static_cast<int>(end.name.number);
    if (!LostAFile(end) || shard >= status.shards_size()) continue;
    // The last line of a server names the file that it lost last: the push log if it lost both.
    const auto errors = LastErrorLines(directory_.LogPath(end.name), 2, IfNoError::kQuoteNone);
    const auto lost = std::ranges::find_if(errors, [](const std::string& line) {
      return line.find("the last checkpoint is not in ") != line.npos;
    });
    if (lost != errors.end()) {
      status.mutable_shards(shard)->set_checkpoint_failure(*lost);
      lost_checkpoints_.push_back(*lost);
      if (std::next(lost) == errors.end()) continue;
    }
    std::string& failure = *status.mutable_shards(shard)->mutable_push_log_failure();
    if (!failure.empty()) continue;
    failure =
        errors.empty() ? fmt::format("the push log of shard {} ends early", shard) : errors.back();
  }
}

nlohmann::ordered_json LocalRun::Summarise(v1::RunStatus status, RunEnd end) const {
  // The status has no name if the coordinator has never answered.
  status.set_name(name_);
  end.models = ModelsOf(status, directory_.Models());
  if (has_push_logs_) end.has_whole_push_logs = PushLogsWhole(status).ok();
  return WithPlan(SummaryJson(status, directory_.path(), end), directory_.path());
}

int LocalRun::EndWithSummary(const v1::RunStatus& status, const RunEnd& end) const {
  const nlohmann::ordered_json summary = Summarise(status, end);
  const absl::Status written = WriteWholeFile(directory_.SummaryPath(), JsonText(summary));
  if (!written.ok()) Warn(is_json_, std::string(written.message()));
  if (arguments_.format == OutputFormat::kJson) WriteToStdout(JsonText(summary));
  if (arguments_.format == OutputFormat::kYaml) WriteToStdout(JsonToYaml(summary));
  return end.exit_code;
}

absl::Status LocalRun::WorkersEnded(size_t ends_before_finish) const {
  std::vector<std::string> kills;
  for (size_t i = ends_before_finish; i < cluster_.ends().size(); ++i) {
    const ProcessEnd& end = cluster_.ends()[i];
    const bool ended_well = end.signal == 0 && (end.exit_code == 0 || !end.was_told);
    if (end.name.role != Role::kWorker || ended_well) continue;
    if (!end.was_told && !has_own_program_) continue;
    const std::string why =
        !end.was_told ? fmt::format("was killed by {} after the run", end.HowText())
        : stop_.stopped()
            ? "had not ended when psctl was " + StopText() + ", and was killed"
            : fmt::format("had not ended {} after the run (run.finish_timeout), and was killed",
                          DurationText(finish_timeout_));
    kills.push_back(fmt::format("{} {}; what it had yet to save is lost; log: {}", end.name.Text(),
                                why, directory_.LogPath(end.name)));
  }
  if (kills.empty()) return absl::OkStatus();
  return absl::DataLossError(fmt::format("{}", fmt::join(kills, "\n")));
}

int LocalRun::Finish(const RunWatch::Result& result) {
  const v1::RunStatus& status = result.status;
  for (const ProcessEnd& end : cluster_.ends()) {
    if (MeaningOf(end) != EndMeaning::kFailure) continue;
    progress_.Note(fmt::format("psctl: warning: after the run, {} ended with {}; log: {}",
                               end.name.Text(), end.HowText(), directory_.LogPath(end.name)));
  }
  absl::Status saved = ModelSaved(status);
  saved.Update(PushLogsWhole(status));
  saved.Update(CheckpointsSaved(lost_checkpoints_));
  saved.Update(WorkersEnded(result.ends_before_finish));
  RunEnd end = EndOf("", std::string(saved.message()), static_cast<int>(ExitCodeFor(saved)));
  if (stop_.stopped()) {
    end.exit_code = stop_.ExitStatus();
    if (end.error.empty()) end.error = StopText();
  }
  const nlohmann::ordered_json summary = Summarise(status, end);
  const std::string json = JsonText(summary);
  // The file is written before stdout, whose reader may be gone.
  saved.Update(WriteWholeFile(directory_.SummaryPath(), json));
  if (arguments_.format == OutputFormat::kTable) {
    WriteToStdout(SummaryText(status, directory_.path()));
  }
  if (arguments_.format == OutputFormat::kJson) WriteToStdout(json);
  if (arguments_.format == OutputFormat::kYaml) WriteToStdout(JsonToYaml(summary));
  // The error goes to stderr, because stdout must hold only one object, the summary.
  if (!saved.ok()) Complain(saved);
  if (stop_.stopped()) {
    const v1::EvaluationStatus* deciding = DecidingEvaluation(status);
    const std::string model = deciding == nullptr ? "" : deciding->model_file();
    progress_.Note(fmt::format("psctl: {}; {}the summary is in {}", StopText(),
                               model.empty() ? "" : "the weights are in " + Printable(model) + ", ",
                               directory_.path()));
    return stop_.ExitStatus();
  }
  return static_cast<int>(ExitCodeFor(saved));
}

std::string LocalRun::StopText() const {
  return fmt::format("stopped by signal {} ({})", stop_.signal(), strsignal(stop_.signal()));
}

int LocalRun::TellOfStop(const RunWatch::Result& result) {
  std::string error = fmt::format("{} {}", StopText(), ReachedText(result.status));
  if (result.verdict != Verdict::kGoOn) {
    error += "; the weights were not saved: " + ReportOf(result).message;
  } else if (result.status.phase() >= v1::TRAINING) {
    error += "; the weights were not saved: " + result.not_saved;
  }
  progress_.Note(fmt::format("psctl: {}; what there is lies in {}", error, directory_.path()));
  return EndWithSummary(result.status, EndOf("interrupted", error, stop_.ExitStatus()));
}

int LocalRun::TellOfPreemption(const RunWatch::Result& result) {
  std::string error = StopText() + " " + ReachedText(result.status);
  ExitCode code = ExitCode::kPreempted;
  if (const ProcessEnd* unsaved = FindUnsaved(cluster_.ends())) {
    code = ExitCode::kIo;
    error +=
        fmt::format("; {} ended with {}, and may not have saved; log: {}", unsaved->name.Text(),
                    unsaved->HowText(), directory_.LogPath(unsaved->name));
  } else {
    error += fmt::format(
        "; what there was is saved; to go on, run it again with --set durability.directory={}",
        checkpoints_);
  }
  progress_.Note("psctl: " + error);
  return EndWithSummary(result.status, EndOf("interrupted", error, static_cast<int>(code)));
}

FailureReport LocalRun::ReportOf(const RunWatch::Result& result) const {
  FailureEvidence evidence = {.verdict = result.verdict,
                              .status = result.status,
                              .start_timeout = start_timeout_,
                              .models = ModelsOf(result.status, directory_.Models()),
                              .log_path = directory_.LogPath({Role::kServer, 0}),
                              .log_lines = {}};
  IfNoError if_none = IfNoError::kQuoteLast;
  if (const ProcessEnd* cause = FindRootCause(cluster_.ends())) {
    evidence.log_path = directory_.LogPath(cause->name);
    // The log of a process that was killed from outside does not say why.
    if (cause->signal == SIGKILL || cause->signal == SIGTERM) if_none = IfNoError::kQuoteNone;
  }
  evidence.log_lines = LastErrorLines(evidence.log_path, kLogLinesMax, if_none);
  return DescribeFailure(cluster_.ends(), evidence);
}

int LocalRun::Fail(const RunWatch::Result& result) {
  const FailureReport report = ReportOf(result);
  if (is_json_) {
    LogError(report.text);
  } else {
    WriteToStderr(report.text);
  }
  const bool is_result = HasDiverged(result.status);
  RunEnd end = EndOf(is_result ? "" : "failed", report.message, static_cast<int>(report.exit_code));
  const bool has_table = is_result && arguments_.format == OutputFormat::kTable;
  if (has_table) WriteToStdout(SummaryText(result.status, directory_.path()));
  end.log_lines = report.log_lines;
  return EndWithSummary(result.status, end);
}

}  // namespace

int RunCommand(const RunArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // If the reader of the output goes away, the run goes on.
  const StopSignal stop(StopSignal::OnPreemption::kStop);
  auto loaded = LoadConfig(arguments.config);
  if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&loaded)) {
    return EndWithDiagnostics(arguments, *diagnostics);
  }
  RunSpec& spec = std::get<RunSpec>(loaded);
  const absl::StatusOr<RestartScope> restart = ScopeOf(arguments.restart, spec.durability.saves());
  if (!restart.ok()) return EndWithStatus(arguments.format, restart.status(), "");
  absl::StatusOr<ProgramPaths> programs = FindPrograms(arguments.bin_dir);
  if (!programs.ok()) return EndWithStatus(arguments.format, programs.status(), "");
  const auto worker_command =
      WorkerProgramOf(arguments.worker_command, spec, "psctl run " + arguments.config.path);
  if (!worker_command.ok()) return EndWithStatus(arguments.format, worker_command.status(), "");

  const absl::Status room = CheckThreadRoom(kThreadsNeeded);
  if (!room.ok()) return EndWithStatus(arguments.format, room, "");
  auto credentials = PsctlCredentials(spec.security);
  if (!credentials.ok()) return EndWithStatus(arguments.format, credentials.status(), "");

  absl::StatusOr<RunDirectory> directory =
      RunDirectory::Create(arguments.run_dir, spec.name, absl::Now());
  if (!directory.ok()) return EndWithStatus(arguments.format, directory.status(), "");
  if (arguments.push_log) spec.log.push_log = directory->path();
  if (spec.durability.saves() && spec.durability.directory.empty()) {
    spec.durability.directory = directory->CheckpointsPath();
  }
  const absl::Status written = WriteWholeFile(directory->ConfigPath(), ToYaml(spec));
  if (!written.ok()) {
    directory->GiveUp();
    return EndWithStatus(arguments.format, written, directory->path());
  }

  if (spec.log.format == LogSpec::Format::kJson) {
    StartLogging({"psctl", std::nullopt}, LogSpec::Level::kInfo, LogSpec::Format::kJson);
  }
  TellOfStart(spec, directory->path());
  return LocalRun(arguments, spec, *restart, *std::move(programs), *worker_command,
                  *std::move(credentials), *std::move(directory), stop)
      .Run();
}

}  // namespace slipstream
