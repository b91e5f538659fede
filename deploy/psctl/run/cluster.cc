#include "deploy/psctl/run/cluster.h"

#include <fmt/format.h>
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

constexpr ProcessName kFirst = {Role::kServer, 0};

// The system chooses the port.
constexpr char kAnyPort[] = ":0";

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
  const std::string_view host = colon == contents.npos ? "127.0.0.1" : contents.substr(0, colon);
  return std::string(host) + ":" + std::to_string(port);
}

absl::Status Cluster::Start() {
  absl::Status status;
  coordinator_ = options_.coordinator;
  for (const ProcessName& name : options_.processes) {
    if (status.ok() && stop_.stopped()) status = absl::AbortedError("asked to stop");
    if (status.ok() && name != kFirst && coordinator_.empty()) status = WaitForCoordinator();
    if (status.ok()) status = StartOne(name);
  }
  if (status.ok() && coordinator_.empty()) status = WaitForCoordinator();
  have_started_ = status.ok();
  return status;
}

absl::Status Cluster::StartOne(ProcessName name) {
  if (name.role != Role::kWorker) return StartServer(name);
  return options_.worker_command.empty() ? StartWorker(name.number) : StartOwnWorker(name.number);
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

std::string Cluster::ListenAddressOf(ProcessName name) const {
  // A server that ended before it listened has no port yet.
  const auto known = ParsePortFile(ReadFile(directory_.PortFilePath(name)));
  const bool was_here = known.has_value() && known->starts_with(options_.host + ":");
  return was_here ? *known : options_.host + kAnyPort;
}

absl::Status Cluster::StartServer(ProcessName name) {
  std::vector<std::string> command = {options_.programs.server, "--config", directory_.ConfigPath(),
                                      "--shard", std::to_string(name.number)};
  const auto add = [&command](const char* flag, const std::string& value) {
    command.insert(command.end(), {flag, value});
  };
  if (!options_.host.empty()) add("--listen", ListenAddressOf(name));
  add("--port-file", directory_.PortFilePath(name));
  for (const std::string& setting : options_.server_settings) add("--set", setting);
  if (name.role == Role::kAggregator) add("--aggregate", std::to_string(name.group));
  if (name != kFirst) add("--coordinator", coordinator_);
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
  if (have_started_ && !starts_no_more_) {
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
  std::ranges::replace(member.command, options_.host + kAnyPort, ListenAddressOf(member.name));
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
    if (!ends_.empty()) {
      return absl::AbortedError(ends_.front().name.Text() + " ended before server 0 listened");
    }
    if (const auto address = ParsePortFile(ReadFile(path))) {
      coordinator_ = *address;
      return absl::OkStatus();
    }
    if (stop_.stopped()) return absl::AbortedError("asked to stop");
    WaitForChange(kLookInterval);
  } while (SteadyNow() < deadline);
  const bool is_here = !options_.processes.empty() && options_.processes.front() == kFirst;
  return absl::DeadlineExceededError(fmt::format(
      "server 0 did not listen within {}{}", DurationText(options_.start_timeout),
      is_here ? "" : "; on its node it has not written " + path + ", which all nodes must see"));
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
                   .was_told = member.was_told});
  }
}

void Cluster::Note(const v1::RunStatus& status) {
  for (Member& member : members_) member.reached = Reached(member.name, status);
  if (status.phase() < v1::FINISHED) return;
  starts_no_more_ = true;
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

void Cluster::StopWorkers(absl::Duration patience) {
  Poll();
  starts_no_more_ = true;
  ForgetStarts(/*they_count=*/false);
  Tell(Role::kWorker);
  WaitUntilEnded(Role::kWorker, SteadyNow() + patience);
  Kill(Role::kWorker);
}

void Cluster::Stop(absl::Duration patience) {
  Poll();
  starts_no_more_ = true;
  ForgetStarts(/*they_count=*/true);
  Tell(std::nullopt);
  WaitUntilEnded(std::nullopt, SteadyNow() + patience);
  Kill(std::nullopt);
}

void Cluster::Kill(std::optional<Role> role) {
  for (Member& member : members_) {
    if (!role.has_value() || member.name.role == *role) member.process.Signal(SIGKILL);
  }
  WaitUntilEnded(role, absl::InfiniteFuture());
}

void Cluster::Tell(std::optional<Role> role) {
  for (Member& member : members_) {
    if (role.has_value() && member.name.role != *role) continue;
    // A second signal would end it at once.
    if (!std::exchange(member.was_told, true)) member.process.Signal(SIGTERM);
  }
}

void Cluster::WaitUntilEnded(std::optional<Role> role, absl::Time deadline) {
  while (AnyIsLeft(role) && SteadyNow() < deadline) {
    WaitForEnd(deadline - SteadyNow(), /*or_stop=*/false);
    Poll();
  }
}

bool Cluster::AnyIsLeft(std::optional<Role> role) const {
  return std::ranges::any_of(members_, [role](const Member& member) {
    return !member.has_ended && (!role.has_value() || member.name.role == *role);
  });
}

bool Cluster::Has(Role role) const {
  return std::ranges::any_of(members_,
                             [role](const Member& member) { return member.name.role == role; });
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
  const absl::Duration rounded =
      absl::Ceil(std::min(timeout, absl::Hours(1)), absl::Milliseconds(1));
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
