#include "deploy/psctl/node_options.h"

#include <vector>

#include "common/base/limits.h"
#include "deploy/psctl/options.h"

namespace slipstream {
namespace {

constexpr CountType kNodes = {1, kWorkersMax};
constexpr CountType kRanks = {0, kWorkersMax - 1};
constexpr CountType kWorkersOfNode = {0, kWorkersMax};
constexpr DurationType kStopTimeout = {absl::ZeroDuration(), absl::Hours(1)};

CLI::Option* AddOptionalCount(CLI::App& command, const char* flag, const CountType& type,
                              std::optional<uint32_t>& count, const char* doc) {
  return command.add_option(flag, count, doc)
      ->type_name("NUMBER")
      ->check([type](const std::string& text) { return ScalarError(type, text); });
}

void AddWorkersPerNode(CLI::App& command, std::vector<uint32_t>& workers) {
  command
      .add_option("--workers-per-node", workers,
                  "How many workers each node has, such as 2,4,1, or one number for all (equal "
                  "shares of cluster.workers)")
      ->type_name("NUMBER,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check([](const std::string& text) { return ScalarError(kWorkersOfNode, text); });
}

}  // namespace

void AddNodeOptions(CLI::App& command, NodeArguments& arguments) {
  AddConfig(command, arguments.config);
  AddFormat(command, arguments.format, {OutputFormat::kTable, OutputFormat::kJson});
  AddOptionalCount(command, "--rank", kRanks, arguments.rank,
                   "Which node this is, counted from 0, where no scheduler tells");
  AddOptionalCount(command, "--size", kNodes, arguments.size, "How many nodes there are");
  command
      .add_option("--attempt", arguments.attempt,
                  "Which start of the run this is, new for each, where no scheduler tells (0)")
      ->type_name("NAME");
  AddWorkersPerNode(command, arguments.workers_per_node);
  command
      .add_option("--run-dir", arguments.run_dir,
                  "A directory that all nodes share (runs/<name>-<job>)")
      ->type_name("DIR");
  command
      .add_option_function<std::string>(
          "--rendezvous",
          [&arguments](const std::string& how) { arguments.by_names = how == "names"; },
          "How nodes find each other: by addresses in the run directory, or by the names in "
          "cluster.servers (directory)")
      ->type_name("directory|names")
      ->check(CLI::IsMember({"directory", "names"}).description(""));
  command
      .add_option("--host", arguments.host,
                  "The name or address by which others reach this node (its own name)")
      ->type_name("HOST")
      ->envname("SLIPSTREAM_HOST");
  AddRestart(command, arguments.restart, arguments.restart_max);
  command.add_option("--bin-dir", arguments.bin_dir, "Where ps_server and ps_worker lie")
      ->type_name("DIR");
  AddDuration(command, "--save-timeout", kStopTimeout, arguments.save_timeout,
              "Without checkpoints, waits this long for the weights after a signal (30s)");
  AddDuration(command, "--stop-timeout", kStopTimeout, arguments.stop_timeout,
              "Kills what has not saved and stopped after this time (20s)");
}

void AddSlurmOptions(CLI::App& command, SlurmArguments& arguments) {
  AddConfig(command, arguments.config);
  AddCount(command, "--nodes", kNodes, arguments.nodes, "How many nodes the job has")->required();
  AddWorkersPerNode(command, arguments.workers_per_node);
  command
      .add_option("--run-dir", arguments.run_dir,
                  "A directory that all nodes share (runs/<name>-<job>)")
      ->type_name("DIR");
  command
      .add_option("--sbatch", arguments.sbatch_options,
                  "An option of sbatch, such as --sbatch=--partition=gpu; may be repeated")
      ->type_name("OPTION")
      ->allow_extra_args(false);
  command.add_flag("--dry-run", arguments.is_dry, "Prints the batch script, and submits nothing");
}

}  // namespace slipstream
