#include "deploy/psctl/node/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <numeric>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/config/run_text.h"
#include "common/files/whole_file.h"
#include "common/log/logging.h"
#include "common/process/environment.h"
#include "common/process/process_limits.h"
#include "common/process/stop_signal.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/config/loading.h"
#include "deploy/psctl/node/node_host.h"
#include "deploy/psctl/node/node_place.h"
#include "deploy/psctl/node/node_run.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/run/directory.h"
#include "deploy/psctl/run/process_plan.h"
#include "deploy/psctl/run/program_locations.h"
#include "deploy/psctl/run/restart_policy.h"
#include "deploy/psctl/run/worker_program.h"

namespace slipstream {
namespace {

/// The directory in which other nodes and later attempts find the run, and that in which this one
/// leaves its files.
struct NodeFolders {
  std::string run;
  std::string attempt;
};

absl::StatusOr<NodeFolders> FoldersOf(const NodeArguments& arguments, const std::string& name,
                                      const NodePlace& place) {
  std::string run = arguments.run_dir;
  if (run.empty() && place.job.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "{} has no name for the job, so say --run-dir DIR: a directory that all nodes share",
        place.source));
  }
  if (run.empty()) run = fmt::format("runs/{}-{}", RunDirectory::FolderName(name), place.job);
  return NodeFolders{run, fmt::format("{}/attempt-{}", run, place.attempt)};
}

std::string NamesText(const std::vector<ProcessName>& processes) {
  std::vector<std::string> names;
  for (const ProcessName& process : processes) names.push_back(process.Text());
  return names.empty() ? "nothing to do" : fmt::format("{}", fmt::join(names, ", "));
}

absl::StatusOr<RunSpec> Load(const NodeArguments& arguments, const NodePlace& place,
                             std::vector<uint32_t>& workers, ExitCode& code) {
  ConfigArguments config = arguments.config;
  // Servers then end with the run, and say by their codes how it ended.
  config.overrides.emplace_back("run.after=exit");
  auto loaded = LoadConfig(config);
  if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&loaded)) {
    PrintDiagnostics(*diagnostics);
    code = ConfigFailureCode(config.path, config.overrides);
    return absl::InvalidArgumentError("");
  }
  auto& spec = std::get<RunSpec>(loaded);
  auto shares = WorkersByNode(place.size, spec.cluster.workers, arguments.workers_per_node);
  if (!shares.ok()) return shares.status();
  workers = *std::move(shares);
  spec.cluster.workers = std::accumulate(workers.begin(), workers.end(), 0U);
  return std::move(spec);
}

}  // namespace

int NodeCommand(const NodeArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  const StopSignal stop(StopSignal::OnPreemption::kStop);
  const auto place =
      FindNodePlace(EnvironmentMap(environ), {arguments.rank, arguments.size, arguments.attempt});
  if (!place.ok()) return EndWith(place.status());
  std::vector<uint32_t> workers;
  ExitCode code = ExitCode::kOk;
  absl::StatusOr<RunSpec> spec = Load(arguments, *place, workers, code);
  if (code != ExitCode::kOk) return static_cast<int>(code);
  if (!spec.ok()) return EndWith(spec.status());
  const auto restart = ScopeOf(arguments.restart, spec->durability.saves());
  if (!restart.ok()) return EndWith(restart.status());
  const auto programs = FindPrograms(arguments.bin_dir);
  if (!programs.ok()) return EndWith(programs.status());
  const auto worker_command =
      WorkerProgramOf(arguments.worker_command, *spec, "psctl node " + arguments.config.path);
  if (!worker_command.ok()) return EndWith(worker_command.status());
  if (absl::Status room = CheckThreadRoom(kThreadsNeeded); !room.ok()) return EndWith(room);
  const auto credentials = PsctlCredentials(spec->security);
  if (!credentials.ok()) return EndWith(credentials.status());

  const auto folders = FoldersOf(arguments, spec->name, *place);
  if (!folders.ok()) return EndWith(folders.status());
  const auto directory = RunDirectory::Share(folders->attempt);
  if (!directory.ok()) return EndWith(directory.status());
  if (spec->durability.saves() && spec->durability.directory.empty()) {
    spec->durability.directory = folders->run + "/checkpoints";
  }
  // All nodes write the same.
  const absl::Status written = WriteWholeFile(directory->ConfigPath(), ToYaml(*spec));
  if (!written.ok()) return EndWith(written);

  Cluster::Options cluster = {.programs = *programs,
                              .processes = ProcessesOf(place->rank, spec->cluster, workers),
                              .worker_command = *worker_command,
                              .worker_log_format = spec->log.format,
                              .security = spec->security,
                              .restart = {.scope = *restart,
                                          .servers_end_with_run = true,
                                          .starts_max = arguments.restart_max},
                              .start_timeout = spec->cluster.start_timeout};
  const bool leads = std::ranges::count(cluster.processes, ProcessName{Role::kServer, 0}) > 0;
  if (!arguments.by_names) {
    cluster.host = arguments.host.empty() ? NodeHost() : arguments.host;
  } else {
    cluster.host = "";
    if (!leads) cluster.coordinator = spec->cluster.servers.front();
  }
  const std::string told =
      fmt::format("node {} of {} ({}): {}; run directory {}", place->rank, place->size,
                  place->source, NamesText(cluster.processes), directory->path());
  ProgressPrinter(spec->log.format).Note("psctl: " + told);
  return NodeRun({.cluster = std::move(cluster),
                  .arguments = arguments,
                  .leads = leads,
                  .saves = spec->durability.saves(),
                  .starts_together = !arguments.by_names,
                  .finish_timeout = FinishTimeout(*spec, !worker_command->empty()),
                  .log_format = spec->log.format,
                  .name = spec->name},
                 *directory, stop, *credentials)
      .Run();
}

}  // namespace slipstream
