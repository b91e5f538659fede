#include "deploy/psctl/node/node_run.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/files/whole_file.h"
#include "common/json/json_text.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/steady_time.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/run/failure_report.h"
#include "deploy/psctl/run/root_cause.h"
#include "deploy/psctl/status/run_summary.h"

namespace slipstream {
namespace {

// How often the run's status is asked for: by who leads, so that figures are fresh when the run is
// over, and by others, who only learn how far their processes have come.
constexpr absl::Duration kLeaderInterval = absl::Milliseconds(200);
constexpr absl::Duration kOthersInterval = absl::Seconds(2);
constexpr absl::Duration kStatusTimeout = absl::Seconds(1);
constexpr absl::Duration kLastPatience = absl::Seconds(1);

// A scheduler that signals all processes at once may reach a server before its psctl.
constexpr absl::Duration kSignalPatience = absl::Seconds(1);

std::filesystem::file_time_type WrittenAt(const std::string& path) {
  std::error_code absent;
  return std::filesystem::last_write_time(path, absent);
}

}  // namespace

NodeRun::NodeRun(Options options, RunDirectory directory, const StopSignal& stop,
                 std::shared_ptr<grpc::ChannelCredentials> credentials)
    : options_(std::move(options)),
      directory_(std::move(directory)),
      stop_(stop),
      credentials_(std::move(credentials)),
      start_(SteadyNow()),
      notice_path_(directory_.path() + "/node-lost"),
      old_notice_(WrittenAt(notice_path_)),
      cluster_(options_.cluster, directory_, stop),
      progress_(options_.log_format),
      next_question_(start_),
      answered_(start_) {
  if (!options_.leads) return;
  metrics_.emplace(directory_.MetricsPath());
  // These are of an earlier start.
  std::error_code absent;
  std::filesystem::remove(directory_.SummaryPath(), absent);
  std::filesystem::remove(notice_path_, absent);
}

int NodeRun::Run() {
  const absl::Status started = cluster_.Start();
  if (const std::string why = ReasonToLeave(); !why.empty()) return Leave(why);
  if (!started.ok()) {
    if (JudgeNode(Facts(SteadyNow())) == NodeVerdict::kServerFailed) {
      return Finish(NodeVerdict::kServerFailed);
    }
    cluster_.Stop(options_.arguments.stop_timeout);
    const std::string message(started.message());
    return End(static_cast<int>(Complain(ExitCodeFor(started), message)), "failed", message);
  }
  client_.emplace(cluster_.coordinator(), credentials_);
  answered_ = SteadyNow();
  if (options_.leads) follower_.emplace(cluster_.coordinator(), credentials_, stop_);
  NodeVerdict verdict = Watch();
  if (verdict == NodeVerdict::kServerFailed && !stop_.stopped()) stop_.WaitFor(kSignalPatience);
  const std::string why = ReasonToLeave();
  return why.empty() ? Finish(verdict) : Leave(why);
}

std::string NodeRun::ReasonToLeave() const {
  if (stop_.stopped()) {
    return fmt::format("stopped by signal {} ({})", stop_.signal(), strsignal(stop_.signal()));
  }
  return lost_;
}

NodeVerdict NodeRun::Watch() {
  NodeVerdict verdict = NodeVerdict::kGoOn;
  while (verdict == NodeVerdict::kGoOn && ReasonToLeave().empty()) {
    cluster_.WaitForChange(next_question_ - SteadyNow());
    const size_t ends_before = cluster_.ends().size();
    // How far a process had come that has ended says whether it starts again.
    AskForStatus(SteadyNow());
    cluster_.Poll();
    const absl::Time now = SteadyNow();
    if (cluster_.ends().size() > ends_before) AskForStatus(now);
    LookForMissingNodes(now);
    TellOfEnds();
    if (!cluster_.Running(Role::kServer).empty()) servers_gone_ = now;
    verdict = JudgeNode(Facts(now));
  }
  if (follower_.has_value() && ReasonToLeave().empty()) {
    if (auto last = follower_->AwaitLast(kLastPatience)) OnStatus(*std::move(last), SteadyNow());
  }
  return verdict;
}

void NodeRun::AskForStatus(absl::Time now) {
  next_question_ = now + (options_.leads ? kLeaderInterval : kOthersInterval);
  if (follower_.has_value() && !stop_.stopped()) {
    if (auto status = follower_->TakeNewest()) OnStatus(*std::move(status), now);
    return;
  }
  absl::StatusOr<v1::RunStatus> status = client_->GetStatus(kStatusTimeout);
  if (status.ok()) OnStatus(*std::move(status), now);
}

void NodeRun::OnStatus(v1::RunStatus status, absl::Time now) {
  answered_ = now;
  status_ = std::move(status);
  cluster_.Note(status_);
  if (!options_.leads) return;
  progress_.Show(status_, now);
  (void)metrics_->Add(now - start_, status_);
}

NodeFacts NodeRun::Facts(absl::Time now) const {
  return {.ends = cluster_.ends(),
          .servers_left = cluster_.Running(Role::kServer).size(),
          .workers_left = cluster_.Running(Role::kWorker).size(),
          .has_servers = cluster_.Has(Role::kServer),
          .phase = status_.phase(),
          .without_servers = now - servers_gone_,
          .finish_timeout = options_.finish_timeout};
}

void NodeRun::TellOfEnds() {
  for (; restarts_told_ < cluster_.restarts().size(); ++restarts_told_) {
    const auto& [end, decision] = cluster_.restarts()[restarts_told_];
    progress_.Note(DescribeRestart(end, decision, cluster_.starts_max()));
  }
  for (; ends_told_ < cluster_.ends().size(); ++ends_told_) {
    const ProcessEnd& end = cluster_.ends()[ends_told_];
    if (end.signal == 0 && end.exit_code == 0) continue;
    progress_.Note(fmt::format("psctl: warning: {} ended with {}; log: {}", end.name.Text(),
                               end.HowText(), directory_.LogPath(end.name)));
  }
}

void NodeRun::EndTraining() {
  if (!client_.has_value()) return;
  AskForStatus(SteadyNow());
  if (status_.phase() < v1::TRAINING) return;  // There is nothing to save.
  if (options_.leads) {
    const absl::Status ended = client_->EndTraining(kStatusTimeout);
    // OUT_OF_RANGE means that the run has finished.
    if (!ended.ok() && !absl::IsOutOfRange(ended)) return;
  }
  const absl::Time deadline = SteadyNow() + options_.arguments.save_timeout;
  while (JudgeNode(Facts(SteadyNow())) == NodeVerdict::kGoOn && SteadyNow() < deadline) {
    cluster_.WaitForChange(std::min(kLeaderInterval, deadline - SteadyNow()));
    cluster_.Poll();
    AskForStatus(SteadyNow());
  }
}

void NodeRun::LookForMissingNodes(absl::Time now) {
  if (!options_.saves || !options_.starts_together) return;
  const absl::Duration timeout = options_.cluster.start_timeout;
  const absl::Duration patience = timeout / 2;
  if (WrittenAt(notice_path_) != old_notice_) {
    std::ifstream file(notice_path_);
    file >> lost_code_ >> std::ws;
    std::getline(file, lost_);
  }
  if (!lost_.empty()) return;
  const bool is_cut_off = !cluster_.Running(Role::kServer).empty() && now - answered_ > patience;
  const auto shard = FindMissingShard(status_, timeout, patience);
  if (options_.leads && shard.has_value()) {
    lost_ = fmt::format("the server of shard {} is silent, so its node is gone", *shard);
  } else if (!options_.leads && is_cut_off) {
    lost_ = "the server of shard 0 does not answer, so node 0 is gone";
  }
  if (!lost_.empty()) TellOthers(ExitCode::kPreempted, lost_);
}

void NodeRun::TellOthers(ExitCode code, const std::string& why) {
  const std::string notice = fmt::format("{} {}\n", static_cast<int>(code), why);
  const absl::Status told = WriteWholeFile(notice_path_, notice);
  if (!told.ok()) progress_.Note("psctl: warning: " + std::string(told.message()));
}

int NodeRun::Leave(const std::string& why) {
  if (!options_.saves) EndTraining();
  if (options_.saves && client_.has_value() && stop_.stopped()) client_->SaveBeforeLeaving();
  cluster_.StopWorkers(options_.arguments.stop_timeout);
  if (client_.has_value()) AskForStatus(SteadyNow());
  cluster_.Stop(options_.arguments.stop_timeout);
  const NodeVerdict verdict = JudgeLeaving(Facts(SteadyNow()));
  if (verdict == NodeVerdict::kServerFailed) return Finish(verdict);
  if (verdict == NodeVerdict::kDone && options_.saves) return Finish(verdict);
  if (verdict == NodeVerdict::kDone) {
    const v1::EvaluationStatus* deciding = DecidingEvaluation(status_);
    const std::string model = deciding == nullptr ? "" : deciding->model_file();
    const std::string where = model.empty() ? "" : "; the weights are in " + Printable(model);
    progress_.Note("psctl: " + why + where);
    return End(stop_.ExitStatus(), "", why);
  }
  if (!options_.saves) {
    const std::string error = why + "; without durability.level nothing is left to go on from";
    progress_.Note("psctl: " + error);
    return End(stop_.ExitStatus(), "interrupted", error);
  }
  if (!stop_.stopped() && lost_code_ != static_cast<int>(ExitCode::kPreempted)) {
    progress_.Note("psctl: error: " + why);
    return End(lost_code_, "failed", why);
  }
  if (const ProcessEnd* unsaved = FindUnsaved(cluster_.ends())) {
    const std::string lost =
        fmt::format("{}; {} ended with {}, and may not have saved; log: {}", why,
                    unsaved->name.Text(), unsaved->HowText(), directory_.LogPath(unsaved->name));
    return End(static_cast<int>(Complain(ExitCode::kIo, lost)), "failed", lost);
  }
  const std::string error = why + "; what there was is saved: started again, the run goes on";
  progress_.Note("psctl: " + error);
  return End(static_cast<int>(ExitCode::kPreempted), "interrupted", error);
}

int NodeRun::Finish(NodeVerdict verdict) {
  const int code = NodeExitCode(Facts(SteadyNow()));
  cluster_.Stop(options_.arguments.stop_timeout);
  progress_.ClearBar();
  if (verdict == NodeVerdict::kDone) {
    return End(code, code == 0 ? "" : "failed", code == 0 ? "" : "the workers of this node failed");
  }
  // Workers of this node are not to blame for the run's end: others might have gone on.
  std::vector<ProcessEnd> ends = EndsOf(Role::kServer, cluster_.ends());
  const bool is_known = FindRootCause(ends) != nullptr || status_.phase() == v1::FAILED;
  if (!is_known) ends = EndsOf(Role::kWorker, cluster_.ends());
  const ProcessEnd* const cause = FindRootCause(ends);
  const FailureReport report = DescribeFailure(
      ends, {.verdict = cause == nullptr ? Verdict::kRunFailed : Verdict::kProcessFailed,
             .status = status_,
             .start_timeout = options_.cluster.start_timeout,
             .models = {},
             .log_path = cause == nullptr ? "" : directory_.LogPath(cause->name),
             .log_lines = {}});
  WriteToStderr(report.text);
  // Started again, it would only fail again.
  const bool is_lasting = cause != nullptr && OnlyRepeats(*cause);
  if (is_lasting && options_.starts_together) TellOthers(report.exit_code, report.message);
  return End(static_cast<int>(report.exit_code), "failed", report.message);
}

int NodeRun::End(int exit_code, const std::string& ended_by, const std::string& error) {
  if (!options_.leads) return exit_code;
  status_.set_name(options_.name);
  const nlohmann::ordered_json summary =
      SummaryJson(status_, directory_.path(),
                  {.ended_by = ended_by,
                   .error = error,
                   .log_lines = {},
                   .exit_code = exit_code,
                   .models = ModelsOf(status_, directory_.Models())});
  const absl::Status written = WriteWholeFile(directory_.SummaryPath(), JsonText(summary));
  if (!written.ok()) progress_.Note("psctl: warning: " + std::string(written.message()));
  if (options_.arguments.format == OutputFormat::kJson) WriteToStdout(JsonText(summary));
  if (options_.arguments.format == OutputFormat::kTable && ended_by.empty()) {
    WriteToStdout(SummaryText(status_, directory_.path()));
  }
  return exit_code;
}

}  // namespace slipstream
