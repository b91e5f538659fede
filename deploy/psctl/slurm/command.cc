#include "deploy/psctl/slurm/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/files/whole_file.h"
#include "common/process/output_text.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/config/loading.h"
#include "deploy/psctl/run/directory.h"
#include "deploy/psctl/run/process_plan.h"
#include "deploy/psctl/run/program_locations.h"
#include "deploy/psctl/run/watch_command.h"
#include "deploy/psctl/slurm/batch_script.h"

namespace slipstream {
namespace {

/// Returns the words of the command that each node runs.
std::vector<std::string> NodeWords(const SlurmArguments& arguments) {
  const char* const search_path = std::getenv("PATH");
  std::vector<std::string> words = {
      ProgramAnywhere(arguments.program, search_path == nullptr ? "" : search_path), "node",
      arguments.config.path, "--restart"};
  for (const std::string& setting : arguments.config.overrides) {
    words.insert(words.end(), {"--set", setting});
  }
  if (!arguments.workers_per_node.empty()) {
    words.insert(words.end(), {"--workers-per-node",
                               fmt::format("{}", fmt::join(arguments.workers_per_node, ","))});
  }
  if (!arguments.run_dir.empty()) words.insert(words.end(), {"--run-dir", arguments.run_dir});
  if (!arguments.worker_command.empty()) words.emplace_back("--");
  words.insert(words.end(), arguments.worker_command.begin(), arguments.worker_command.end());
  return words;
}

}  // namespace

int SlurmCommand(const SlurmArguments& arguments) {
  auto loaded = LoadConfig(arguments.config);
  if (const auto* diagnostics = std::get_if<std::vector<Diagnostic>>(&loaded)) {
    PrintDiagnostics(*diagnostics);
    return static_cast<int>(ConfigFailureCode(arguments.config.path, arguments.config.overrides));
  }
  const auto& spec = std::get<RunSpec>(loaded);
  if (!arguments.workers_per_node.empty()) {
    const auto shares = WorkersByNode(arguments.nodes, 0, arguments.workers_per_node);
    if (!shares.ok()) return EndWith(shares.status());
  }
  if (!spec.durability.saves()) {
    WriteToStderr(
        "psctl: warning: durability.level is memory, so a job that is preempted begins anew; "
        "checkpoint or synced goes on\n");
  }
  if (arguments.nodes > 1 && !spec.security.may_leave_machine()) {
    WriteToStderr(
        "psctl: warning: servers are reached only from their own nodes without security.mtls, or "
        "--set security.plaintext=accept_the_risk where the cluster's network is trusted\n");
  }
  const std::string name = RunDirectory::FolderName(spec.name);
  const std::string run_dir =
      arguments.run_dir.empty() ? "runs/" + name + "-$SLURM_JOB_ID" : ShellWord(arguments.run_dir);
  const std::string text = BatchScriptText({.job_name = name,
                                            .nodes = arguments.nodes,
                                            .sbatch_options = arguments.sbatch_options,
                                            .command = NodeWords(arguments),
                                            .run_dir = run_dir});
  if (arguments.is_dry) {
    WriteToStdout(text);
    return 0;
  }
  const auto sbatch = FindOnPath("sbatch");
  if (!sbatch.ok()) return EndWith(sbatch.status());
  const std::string script = name + ".sbatch";
  if (absl::Status written = WriteWholeFile(script, text); !written.ok()) return EndWith(written);
  return Become(*sbatch, {script});
}

}  // namespace slipstream
