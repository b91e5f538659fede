#include "deploy/psctl/run/cluster.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "common/base/duration_text.h"
#include "common/process/steady_time.h"
#include "common/security/security_flags.h"
#include "deploy/psctl/run/child_process.h"
#include "deploy/psctl/run/root_cause.h"

namespace slipstream {
namespace {

// The time between looks at a port file: long against a look, and too short for a person to notice.
constexpr absl::Duration kLookInterval = absl::Milliseconds(10);

// The system chooses the port.
constexpr char kAnyPort[] = "127.0.0.1:0";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::optional<std::string> ParsePortFile(std::string_view contents) {
  if (contents.ends_with('\n')) contents.remove_suffix(1);
  const size_t colon = contents.rfind(':');
  const std::string_view digits = colon == contents.npos ? contents : contents.substr(colon + 1);
  uint16_t port = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || port == 0) {
    return std::nullopt;
  }
  return "127.0.0.1:" + std::to_string(port);
}

absl::Status Cluster::Start() {
  absl::Status status = StartServer(0);
  if (status.ok()) status = WaitForCoordinator();
  for (uint32_t shard = 1; status.ok() && shard < options_.servers; ++shard) {
    status = StartServer(shard);
  }
  for (uint32_t i = 0; status.ok() && i < options_.groups * options_.servers; ++i) {
    status = StartAggregator(i / options_.servers, i % options_.servers);
  }
  for (uint32_t worker = 0; status.ok() && worker < options_.workers; ++worker) {
    status = StartWorker(worker);
  }
  have_started_ = status.ok();
  return status;
}

absl::Status Cluster::StartOwnWorker(uint32_t worker) {
  std::vector<std::string> variables = {
      "SLIPSTREAM_COORDINATOR=" + coordinator_, "SLIPSTREAM_WORKER=" + std::to_string(worker),
      "SLIPSTREAM_RUN_DIR=" + std::filesystem::absolute(directory_.path()).string()};
  const SecuritySpec& security = options_.security;
  for (const auto& [name, value] : {std::pair("SLIPSTREAM_CA", security.mtls.ca),
                                    std::pair("SLIPSTREAM_CERTIFICATE", security.mtls.certificate),
                                    std::pair("SLIPSTREAM_KEY", security.mtls.key),
                                    std::pair("SLIPSTREAM_TOKEN", security.token)}) {
    if (!value.empty()) variables.push_back(std::string(name) + "=" + value);
  }
  return StartProcess({Role::kWorker, worker}, options_.worker_command, variables);
}

absl::Status Cluster::StartWorker(uint32_t worker) {
  if (!options_.worker_command.empty()) return StartOwnWorker(worker);
  std::vector<std::string> command = {options_.programs.worker, "--coordinator", coordinator_,
                                      "--worker", std::to_string(worker)};
  if (options_.worker_log_format == LogSpec::Format::kJson) {
    command.insert(command.end(), {"--log-format", "json"});
  }
  command.insert(command.end(), {"--fallback-save-dir", directory_.path()});
  const std::vector<std::string> flags = SecurityFlags(options_.security);
  command.insert(command.end(), flags.begin(), flags.end());
  return StartProcess({Role::kWorker, worker}, std::move(command));
}

std::vector<std::string> Cluster::ServerCommand(uint32_t shard) const {
  // psctl reads the final figures after the run is over, so the servers must stay until then.
  return {options_.programs.server,
          "--config",
          directory_.ConfigPath(),
          "--shard",
          std::to_string(shard),
          "--listen",
          kAnyPort,
          "--set",
          "run.after=stay"};
}

absl::Status Cluster::StartServer(uint32_t shard) {
  const ProcessName name = {Role::kServer, shard};
  std::vector<std::string> command = ServerCommand(shard);
  command.insert(command.end(), {"--port-file", directory_.PortFilePath(name)});
  if (shard > 0) command.insert(command.end(), {"--coordinator", coordinator_});
  return StartProcess(name, std::move(command));
}

absl::Status Cluster::StartAggregator(uint32_t group, uint32_t shard) {
  const ProcessName name = {.role = Role::kAggregator, .number = shard, .group = group};
  std::vector<std::string> command = ServerCommand(shard);
  command.insert(command.end(), {"--port-file", directory_.PortFilePath(name), "--aggregate",
                                 std::to_string(group), "--coordinator", coordinator_});
  return StartProcess(name, std::move(command));
}

absl::Status Cluster::StartProcess(ProcessName name, std::vector<std::string> command,
                                   const std::vector<std::string>& variables) {
  absl::StatusOr<ChildProcess> process = Launch(name, command, variables);
  if (!process.ok()) return process.status();
  members_.push_back({.name = name,
                      .command = std::move(command),
                      .variables = variables,
                      .process = *std::move(process),
                      .started = SteadyNow()});
  return absl::OkStatus();
}

absl::StatusOr<ChildProcess> Cluster::Launch(ProcessName name,
                                             const std::vector<std::string>& command,
                                             const std::vector<std::string>& variables) const {
  const std::string log = directory_.LogPath(name);
  // The first of several variables of one name counts.
  std::vector<std::string> environment = variables;
  for (std::string& variable : ChildEnvironment(environ)) {
    environment.push_back(std::move(variable));
  }
  return ChildProcess::Start({.command = command,
                              .environment = std::move(environment),
                              .stdout_path = log,
                              .stderr_path = log});
}

void Cluster::OnEnd(Member& member, const ProcessEnd& end) {
  RestartDecision decision;
  if (have_started_ && !is_over_) {
    decision = restart_.Decide({.end = end,
                                .ran = SteadyNow() - member.started,
                                .reached = member.reached,
                                .starts = member.starts,
                                .before = member.before});
  }
  member.before = {end, member.reached};
  member.starts = decision.number;
  member.has_ended = !decision.starts;
  if (decision.starts) member.starts_at = SteadyNow() + decision.pause;
  if (!decision.starts) ends_.push_back(end);
  if (decision.starts || !decision.why_not.empty()) restarts_.push_back({end, decision});
}

void Cluster::StartAgain(Member& member) {
  member.starts_at.reset();
  // A process that ended before it listened has no port yet.
  if (const auto address = ParsePortFile(ReadFile(directory_.PortFilePath(member.name)))) {
    std::ranges::replace(member.command, std::string(kAnyPort), *address);
  }
  absl::StatusOr<ChildProcess> process = Launch(member.name, member.command, member.variables);
  member.has_ended = !process.ok();
  if (member.has_ended) {
    ends_.push_back(member.before->end);
    return;
  }
  member.process = *std::move(process);
  member.started = SteadyNow();
}

absl::Status Cluster::WaitForCoordinator() {
  const std::string path = directory_.PortFilePath({Role::kServer, 0});
  const absl::Time deadline = SteadyNow() + options_.start_timeout;
  do {
    Poll();
    if (!ends_.empty()) return absl::AbortedError("server 0 ended before it listened");
    if (const auto address = ParsePortFile(ReadFile(path))) {
      coordinator_ = *address;
      return absl::OkStatus();
    }
    if (stop_.stopped()) return absl::AbortedError("asked to stop");
    WaitForChange(kLookInterval);
  } while (SteadyNow() < deadline);
  return absl::DeadlineExceededError("server 0 did not listen within " +
                                     DurationText(options_.start_timeout));
}

void Cluster::Poll() {
  for (Member& member : members_) {
    if (member.has_ended) continue;
    if (member.starts_at.has_value()) {
      if (*member.starts_at <= SteadyNow()) StartAgain(member);
      continue;
    }
    const auto end = member.process.Poll();
    if (!end) continue;
    OnEnd(member, {.name = member.name,
                   .exit_code = end->exit_code,
                   .signal = end->signal,
                   .was_told = were_told_});
  }
}

void Cluster::Note(const v1::RunStatus& status) {
  for (Member& member : members_) member.reached = Reached(member.name, status);
  if (status.phase() < v1::FINISHED) return;
  is_over_ = true;
  ForgetStarts(/*they_count=*/status.phase() != v1::FINISHED);
}

void Cluster::ForgetStarts(bool they_count) {
  for (Member& member : members_) {
    if (!member.starts_at.has_value()) continue;
    member.starts_at.reset();
    member.has_ended = true;
    if (they_count) ends_.push_back(member.before->end);
  }
}

void Cluster::Stop(absl::Duration patience) {
  Poll();
  were_told_ = true;
  ForgetStarts(/*they_count=*/true);
  SignalAll(SIGTERM);
  const absl::Time deadline = SteadyNow() + patience;
  while (AnyIsLeft() && SteadyNow() < deadline) {
    WaitForEnd(deadline - SteadyNow(), /*or_stop=*/false);
    Poll();
  }
  SignalAll(SIGKILL);
  while (AnyIsLeft()) {
    WaitForEnd(absl::Hours(1), /*or_stop=*/false);
    Poll();
  }
}

bool Cluster::AnyIsLeft() const {
  return std::ranges::any_of(members_, [](const Member& member) { return !member.has_ended; });
}

void Cluster::SignalAll(int signal) {
  for (Member& member : members_) member.process.Signal(signal);
}

void Cluster::WaitForChange(absl::Duration timeout) const {
  WaitForEnd(timeout, /*or_stop=*/!stop_.stopped());
}

void Cluster::WaitForEnd(absl::Duration timeout, bool or_stop) const {
  std::vector<pollfd> waiting;
  if (or_stop) waiting.push_back({.fd = stop_.fd(), .events = POLLIN, .revents = 0});
  for (const Member& member : members_) {
    if (member.has_ended) continue;
    if (member.starts_at.has_value()) {
      timeout = std::min(timeout, *member.starts_at - SteadyNow());
      continue;
    }
    waiting.push_back({.fd = member.process.fd(), .events = POLLIN, .revents = 0});
  }
  const absl::Duration rounded = absl::Ceil(timeout, absl::Milliseconds(1));
  const auto milliseconds = absl::ToInt64Milliseconds(std::max(rounded, absl::ZeroDuration()));
  // The caller polls whether a signal interrupted the wait or not.
  poll(waiting.data(), waiting.size(), static_cast<int>(milliseconds));
}

std::vector<uint32_t> Cluster::Running(Role role) const {
  std::vector<uint32_t> running;
  for (const Member& member : members_) {
    if (member.name.role == role && !member.has_ended) running.push_back(member.name.number);
  }
  return running;
}

}  // namespace slipstream
