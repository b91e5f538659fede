// ps_server: one shard of the model of a run.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/config/run_config.h"
#include "common/config/server_address.h"
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
#include "common/security/credential_files.h"
#include "common/settings/learning_warnings.h"
#include "common/settings/run_spec.h"
#include "server/aggregator/aggregator.h"
#include "server/command_line.h"
#include "server/listen_address.h"
#include "server/server_process.h"

namespace slipstream {
namespace {

ConfigResult LoadSettings(const CommandLine& line) {
  Overrides overrides;
  overrides.set = line.set;
  if (!line.http.empty()) overrides.set.push_back("http.listen=" + line.http);
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
void PrepareForConnections(const RunSpec& run, bool is_aggregator) {
  const ClusterSpec& cluster = run.cluster;
  // An aggregator serves one group, and a shard's server all workers and an aggregator of each
  // group.
  const uint64_t workers =
      is_aggregator ? std::min(cluster.tree.fanout, cluster.workers) : cluster.workers;
  const uint64_t aggregators = is_aggregator ? 0 : cluster.groups();
  // A worker of this machine takes up to six, in tests. An aggregator has a connection for each
  // uplink and one for pulls, and beside each it may have one over a local socket. The rest is for
  // other clients.
  const uint64_t needed =
      256 + 6 * workers + 2 * (uint64_t{Aggregator::kUplinksMax} + 1) * aggregators;
  const uint64_t limit = RaiseOpenFilesLimit();
  if (limit >= needed) return;
  LogWarning(
      "the clients may need more open files than the limit: raise it (ulimit -Hn, LimitNOFILE of "
      "systemd), or connections will be turned away",
      {{"workers", workers}, {"needed", needed}, {"limit", limit}});
}

/// Returns the credential files of the server with this number, after checking them.
absl::StatusOr<CredentialFiles> CredentialsOf(const RunSpec& run, uint32_t number,
                                              const std::string& host) {
  const CredentialHolder holder = {CertifiedRole::kServer, number};
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

/// Says why the run has no aggregators for this group of workers.
std::string WithoutGroup(uint32_t group, const ClusterSpec& cluster) {
  if (cluster.groups() == 0) return "--aggregate: the run has no aggregators: set cluster.tree";
  return fmt::format(
      "--aggregate {}: the number of groups is {} (cluster.workers {}, cluster.tree.fanout {})",
      group, cluster.groups(), cluster.workers, cluster.tree.fanout);
}

/// Returns the exit code of a process that has drained, and logs why it ends.
int EndOf(absl::Status status, const absl::Status& files, const StopSignal& stop) {
  // If a file lacks something, this process has already logged that.
  if (stop.stopped()) {
    LogInfo("stopped by a signal", {{"signal", stop.signal()}});
    return files.ok() ? stop.ExitStatus() : static_cast<int>(ExitCodeFor(files));
  }
  if (!status.ok()) LogError(std::string(status.message()));
  status.Update(files);
  return static_cast<int>(ExitCodeFor(status));
}

int Run(const RunSpec& run, const CommandLine& line, const ListenAddress& listen,
        const StopSignal& stop) {
  ServerProcess::Options options = {
      .run = run, .shard = ShardId{line.shard}, .listen = listen, .group = line.aggregate};
  options.accepts_rollback = line.accept_rollback;
  StartLogging({"server", options.number()}, run.log.level, run.log.format);
  PrepareForConnections(run, line.aggregate.has_value());
  options.coordinator = line.coordinator.empty() ? run.cluster.servers[0] : line.coordinator;
  const absl::StatusOr<CredentialFiles> credentials =
      CredentialsOf(run, options.number(), listen.public_host);
  if (!credentials.ok()) {
    LogError(std::string(credentials.status().message()));
    return static_cast<int>(ExitCodeFor(credentials.status()));
  }
  options.credentials = *credentials;
  ServerProcess process(std::move(options));
  absl::Status status = process.Listen();
  if (status.ok() && !line.port_file.empty()) {
    status = WriteWholeFile(line.port_file, process.address() + "\n");
  }
  if (status.ok()) {
    if (line.aggregate.has_value()) {
      LogInfo("aggregator listens", {{"address", process.address()},
                                     {"shard", line.shard},
                                     {"group", *line.aggregate},
                                     {"version", kVersion}});
    } else {
      LogInfo("server listens",
              {{"address", process.address()}, {"shard", line.shard}, {"version", kVersion}});
    }
    if (line.shard == 0 && !line.aggregate.has_value()) {
      for (const std::string& warning : LearningWarnings(run)) LogWarning(warning);
    }
    if (!credentials->is_encrypted() && run.security.accept_plaintext_risk) {
      LogWarning("nothing is encrypted: whoever reaches the servers can read and change the run");
    }
    status = process.Serve(stop);
  }
  const absl::Status files = process.Finish();
  const int code = EndOf(status, files, stop);
  if (process.IsAtDisk()) {
    // To wait for the disk could take any time. A checkpoint that is not complete has no name yet,
    // and the next process removes it.
    LogWarning("ends while a checkpoint is being written or read");
    std::_Exit(code);
  }
  return code;
}

int Main(int argc, char** argv) {
  UseSystemResolver();
  std::set_new_handler(EndForLackOfMemory);
  DropPrivileges();
  const StopSignal stop;
  TuneForTransfers();
  TakeLibraryLogs();
  const std::variant<CommandLine, int> parsed = ParseCommandLine(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& line = std::get<CommandLine>(parsed);
  if (const absl::Status room = CheckThreadRoom(kThreadsNeeded); !room.ok()) {
    return Exit(ExitCodeFor(room), "error: " + std::string(room.message()));
  }

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
  if (line.aggregate.has_value() && *line.aggregate >= run.cluster.groups()) {
    return Exit(ExitCode::kUsage, WithoutGroup(*line.aggregate, run.cluster));
  }
  if (run.durability.saves() && run.durability.directory.empty()) {
    const char* const level = run.durability.keeps_log() ? "synced" : "checkpoint";
    return Exit(ExitCode::kConfiguration,
                fmt::format("durability.level {} needs durability.directory, the directory for "
                            "this server's checkpoints",
                            level));
  }
  // An aggregator has no address in the settings.
  const std::string& configured =
      line.aggregate.has_value() ? line.listen : run.cluster.servers[line.shard];
  const absl::StatusOr<ListenAddress> listen = ParseListenAddress(
      line.listen.empty() ? configured : line.listen, configured, run.security.may_leave_machine());
  if (!listen.ok()) {
    return Exit(ExitCode::kConfiguration, std::string(listen.status().message()));
  }
  if (line.aggregate.has_value() && ParseServerAddress(listen->public_host + ":1")->IsWildcard()) {
    return Exit(ExitCode::kUsage,
                "--listen " + line.listen +
                    ": an aggregator needs a host by which its workers reach it, as "
                    "cluster.servers does not name it");
  }
  return Run(run, line, *listen, stop);
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  return slipstream::GuardedMain("ps_server", [&] { return slipstream::Main(argc, argv); });
}
