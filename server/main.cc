// ps_server: one shard of the model of a run.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/config/run_config.h"
#include "common/files/whole_file.h"
#include "common/log/log.h"
#include "common/log/logging.h"
#include "common/process/environment.h"
#include "common/process/exit_code.h"
#include "common/process/guarded_main.h"
#include "common/process/privileges.h"
#include "common/process/process_limits.h"
#include "common/process/stop_signal.h"
#include "common/process/version.h"
#include "common/rpc/library_settings.h"
#include "common/run/run_spec.h"
#include "common/security/credential_files.h"
#include "server/command_line.h"
#include "server/listen_address.h"
#include "server/server_process.h"

namespace slipstream {
namespace {

ConfigResult LoadSettings(const CommandLine& line) {
  Overrides overrides;
  overrides.set = line.set;
  if (!line.log_level.empty()) overrides.set.push_back("log.level=" + line.log_level);
  if (!line.log_format.empty()) overrides.set.push_back("log.format=" + line.log_format);
  overrides.environment = EnvironmentMap(environ);
  return LoadRunConfig(line.config, overrides);
}

int Exit(ExitCode code, const std::string& message) {
  std::fprintf(stderr, "ps_server: %s\n", message.c_str());
  return static_cast<int>(code);
}

/// Raises the limit of open files, as each connection takes one, and warns if it is too low.
void PrepareForConnections(const RunSpec& run) {
  // A worker of this machine takes up to six, in tests; the rest is for other clients.
  const uint64_t needed = 256 + 6 * uint64_t{run.cluster.workers};
  const uint64_t limit = RaiseOpenFilesLimit();
  if (limit >= needed) return;
  LogWarning(
      "the workers may need more open files than the limit: raise it (ulimit -Hn, LimitNOFILE of "
      "systemd), or connections will be turned away",
      {{"workers", run.cluster.workers}, {"needed", needed}, {"limit", limit}});
}

/// Returns the credential files of this server, after checking them.
absl::StatusOr<CredentialFiles> CredentialsOf(const RunSpec& run, uint32_t shard,
                                              const std::string& host) {
  const CredentialHolder holder = {CertifiedRole::kServer, shard};
  CredentialFiles files = FilesFor(run.security, holder);
  const absl::StatusOr<OwnCredentials> own = CheckCredentials(files, holder, absl::Now());
  if (!own.ok()) return own.status();
  if (own->identity.has_value() && own->identity->run != run.name) {
    return absl::InvalidArgumentError(
        fmt::format("{}: the certificate is for {}, and the run's name is {}: make one with psctl "
                    "certs init --run {}, or change `name`",
                    files.certificate, own->identity->ToUri(), run.name, run.name));
  }
  if (files.is_encrypted()) {
    const absl::Status is_for = CheckHost(own->certificate, host);
    if (!is_for.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {}, by which others call this server: make one with psctl certs init "
                      "--hosts, where + joins the names of one server",
                      files.certificate, std::string(is_for.message())));
    }
  }
  WarnAbout(*own, files, absl::Now());
  return files;
}

int Run(const RunSpec& run, const CommandLine& line, const ListenAddress& listen,
        const StopSignal& stop) {
  StartLogging({"server", line.shard}, run.log.level, run.log.format);
  PrepareForConnections(run);
  const std::string coordinator =
      line.coordinator.empty() ? run.cluster.servers[0] : line.coordinator;
  const absl::StatusOr<CredentialFiles> credentials =
      CredentialsOf(run, line.shard, listen.public_host);
  if (!credentials.ok()) {
    LogError(std::string(credentials.status().message()));
    return static_cast<int>(ExitCodeFor(credentials.status()));
  }
  ServerProcess process({run, ShardId{line.shard}, listen, coordinator, *credentials});
  absl::Status status = process.Listen();
  if (status.ok() && !line.port_file.empty()) {
    status = WriteWholeFile(line.port_file, process.address() + "\n");
  }
  if (status.ok()) {
    LogInfo("server listens",
            {{"address", process.address()}, {"shard", line.shard}, {"version", kVersion}});
    if (!credentials->is_encrypted() && run.security.accept_plaintext_risk) {
      LogWarning("nothing is encrypted: whoever reaches the servers can read and change the run");
    }
    status = process.Serve(stop);
  }
  // If the push log lacks pushes, this process has already logged that.
  const absl::Status push_log = process.Finish();
  if (stop.stopped()) {
    LogInfo("stopped by a signal", {{"signal", stop.signal()}});
    return push_log.ok() ? stop.ExitStatus() : static_cast<int>(ExitCodeFor(push_log));
  }
  if (!status.ok()) LogError(std::string(status.message()));
  status.Update(push_log);
  return static_cast<int>(ExitCodeFor(status));
}

int Main(int argc, char** argv) {
  DropPrivileges();
  const StopSignal stop;
  TuneForTransfers();
  TakeLibraryLogs();
  const std::variant<CommandLine, int> parsed = ParseCommandLine(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& line = std::get<CommandLine>(parsed);

  const ConfigResult settings = LoadSettings(line);
  if (const auto* wrong = std::get_if<std::vector<Diagnostic>>(&settings)) {
    std::fputs(ToString(*wrong).c_str(), stderr);
    return static_cast<int>(ConfigFailureCode(line.config, line.set));
  }
  const auto& run = std::get<RunSpec>(settings);
  if (line.shard >= run.cluster.servers.size()) {
    return Exit(ExitCode::kUsage, "--shard " + std::to_string(line.shard) +
                                      ": cluster.servers has " +
                                      std::to_string(run.cluster.servers.size()));
  }
  const std::string& configured = run.cluster.servers[line.shard];
  const absl::StatusOr<ListenAddress> listen = ParseListenAddress(
      line.listen.empty() ? configured : line.listen, configured, run.security.may_leave_machine());
  if (!listen.ok()) {
    return Exit(ExitCode::kConfiguration, std::string(listen.status().message()));
  }
  return Run(run, line, *listen, stop);
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  return slipstream::GuardedMain("ps_server", [&] { return slipstream::Main(argc, argv); });
}
