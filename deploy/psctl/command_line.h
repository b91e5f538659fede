#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMMAND_LINE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMMAND_LINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/process/exit_code.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/completion/command_description.h"

namespace slipstream {

enum class OutputFormat { kTable, kText, kJson, kYaml };

/// Which processes are started again that end during the run. kPossible: workers and aggregators,
/// and servers if they keep checkpoints. An aggregator is started again where servers are.
enum class RestartChoice { kNone, kPossible, kServers, kWorkers, kAll };

/// A configuration file and the settings that override it, as `key=value`.
struct ConfigArguments {
  std::string path;
  std::vector<std::string> overrides;
};

struct RunArguments {
  /// The word that started psctl: a path, or a name that the shell found on its PATH.
  std::string program;
  ConfigArguments config;
  OutputFormat format = OutputFormat::kTable;

  /// The run directory. If empty, psctl makes a fresh one under runs/.
  std::string run_dir;
  bool push_log = false;

  RestartChoice restart = RestartChoice::kNone;

  /// How often in a row a process is started again. In [1, 1000].
  uint32_t restart_max = 5;

  /// The directory of ps_server and ps_worker. If empty, psctl looks for them itself.
  std::string bin_dir;

  /// The program that the workers run instead of ps_worker, and its arguments; empty for ps_worker.
  std::vector<std::string> worker_command;

  /// How long the weights may take to be measured and saved after a signal. In [0 s, 1 h].
  absl::Duration save_timeout = absl::Seconds(30);

  /// How long processes that were told to stop may take before they are killed. In [0 s, 1 h].
  absl::Duration stop_timeout = absl::Seconds(10);
};

/// One node's part of a run.
struct NodeArguments {
  ConfigArguments config;

  /// How the node of server 0 prints the summary.
  OutputFormat format = OutputFormat::kTable;

  /// This node's place, where no scheduler tells it.
  std::optional<uint32_t> rank;
  std::optional<uint32_t> size;

  /// The name of this start of the run, equal on all nodes; if empty, the scheduler tells it.
  std::string attempt;

  /// How many workers each node has, or all of them; empty for equal shares of cluster.workers.
  std::vector<uint32_t> workers_per_node;

  /// The directory that all nodes share; if empty, runs/<name>-<job>.
  std::string run_dir;

  /// Set if servers listen where cluster.servers says; else they write their addresses into the run
  /// directory.
  bool by_names = false;

  /// The name or address by which others reach this node; if empty, psctl finds one.
  std::string host;
  RestartChoice restart = RestartChoice::kNone;
  uint32_t restart_max = 5;
  std::string bin_dir;
  std::vector<std::string> worker_command;

  /// How long the weights may take to be saved where servers keep no checkpoints, and how long
  /// processes that were told to stop may take before they are killed. In [0 s, 1 h].
  absl::Duration save_timeout = absl::Seconds(30);
  absl::Duration stop_timeout = absl::Seconds(20);
};

/// A job of Slurm that runs psctl node.
struct SlurmArguments {
  /// The word that started psctl, as in RunArguments.
  std::string program;
  ConfigArguments config;
  uint32_t nodes = 1;
  std::vector<uint32_t> workers_per_node;
  std::string run_dir;

  /// Further options of sbatch.
  std::vector<std::string> sbatch_options;

  /// The program that the workers run, and its arguments; empty for ps_worker.
  std::vector<std::string> worker_command;

  /// Set if the script is printed, and no job submitted.
  bool is_dry = false;
};

struct ValidateArguments {
  ConfigArguments config;
  OutputFormat format = OutputFormat::kTable;
};

struct ConfigInitArguments {
  /// The file to write; "-" is stdout.
  std::string path = "run.yaml";
  bool force = false;
};

struct ConfigShowArguments {
  ConfigArguments config;
  OutputFormat format = OutputFormat::kYaml;
};

struct EvaluateArguments {
  /// A run directory, or a model file.
  std::string model;

  /// The run.yaml to use. If empty, the run directory's, or the settings that the file holds.
  std::string config;
  std::vector<std::string> overrides;
  OutputFormat format = OutputFormat::kTable;

  /// The directory of ps_evaluate. If empty, psctl looks for it itself.
  std::string bin_dir;
};

struct CompareArguments {
  /// Run directories, at least one.
  std::vector<std::string> directories;
  OutputFormat format = OutputFormat::kTable;
};

struct PlotArguments {
  /// Run directories, at least one.
  std::vector<std::string> directories;

  /// The path of the picture. If empty, it lies beside the first directory, under the directory's
  /// name with .svg.
  std::string output;
};

struct PlanArguments {
  /// The path is empty if it is that of the run to check.
  ConfigArguments config;
  OutputFormat format = OutputFormat::kTable;

  /// The numbers of workers to plan for, rising; those of the configuration if empty.
  std::vector<uint32_t> workers;

  /// Costs by the keys of kCostFigures, in their units.
  std::map<std::string, double> costs;

  /// Directories of runs that have ended: one to take costs from, and one to compare with its plan.
  std::string from;
  std::string check;

  /// The directory of ps_lab. If empty, psctl looks for it itself.
  std::string bin_dir;
};

struct StatusArguments {
  std::string coordinator;
  SecuritySpec security;
  OutputFormat format = OutputFormat::kTable;

  /// Set if the status is shown every `interval`, in [100 ms, 1 h], until the run is over. If the
  /// coordinator is not there, at first or later, psctl waits for it for `wait`, in [0 s, 24 h].
  bool watch = false;
  absl::Duration interval = absl::Seconds(1);
  absl::Duration wait = absl::Minutes(1);
};

struct EventsArguments {
  std::string coordinator;
  SecuritySpec security;
  OutputFormat format = OutputFormat::kText;

  /// Set if events are printed as they happen, until the run is over. If the coordinator is not
  /// there, at first or later, psctl waits for it for `wait`, in [0 s, 24 h].
  bool follow = false;
  absl::Duration wait = absl::Minutes(1);
};

struct StopArguments {
  std::string coordinator;
  SecuritySpec security;
};

struct DrainArguments {
  std::string coordinator;
  SecuritySpec security;

  /// The shard of the server that is to end; without one, all servers, that of shard 0 as the last.
  std::optional<uint32_t> server;

  /// How long the command waits for each server. In [1 s, 1 h].
  absl::Duration timeout = absl::Seconds(30);
};

struct ChangeArguments {
  std::string coordinator;
  SecuritySpec security;

  /// The settings of the run that change, as `key=value`; at least one.
  std::vector<std::string> settings;
};

struct PullArguments {
  std::string coordinator;
  SecuritySpec security;

  /// The model file to write. An existing one is replaced only if `force` is set.
  std::string output;
  bool force = false;

  /// How long the command waits for the run's first weights and reads them, in all. In [1 s, 24 h].
  absl::Duration timeout = absl::Minutes(1);
};

struct CertsInitArguments {
  std::string directory;

  /// The path of a run.yaml, whose settings apply where `run`, `hosts` and `workers` are not given.
  /// Empty if there is none.
  std::string config;
  std::optional<std::string> run;

  /// The names and addresses of each shard's server, joined by '+'; one item per shard.
  std::vector<std::string> hosts;

  /// The same for the aggregators; one item per group.
  std::vector<std::string> aggregator_hosts;
  std::optional<uint32_t> workers;

  /// Set to make a certificate for workers whose id the coordinator chooses.
  bool any_worker = false;

  /// How many days the certificates are valid. In [1, 3650].
  uint32_t days = 365;
};

struct CertsShowArguments {
  std::string directory;
  OutputFormat format = OutputFormat::kTable;
};

struct CertsRenewArguments {
  std::string directory;
  uint32_t days = 365;
};

struct CheckpointArguments {
  enum class Action { kLs, kVerify, kInspect, kExport, kReshard };
  Action action = Action::kLs;

  /// A directory of checkpoints: a run's durability.directory, or any directory below it.
  std::string directory;

  /// How `ls` prints.
  OutputFormat format = OutputFormat::kTable;

  /// Set if `verify` also redoes the log behind each checkpoint.
  bool replay = false;

  /// The model file that `export` writes, or the directory that `reshard` fills. An existing file
  /// is replaced only if `force` is set.
  std::string output;
  bool force = false;

  /// The version that `export` takes; without one, the newest.
  std::optional<uint64_t> version;

  /// For how many servers `reshard` cuts the model, and whether tensors stay whole.
  uint32_t servers = 0;
  bool keeps_tensors_whole = false;
};

/// Has a running cluster save a checkpoint.
struct SaveArguments {
  std::string coordinator;
  SecuritySpec security;

  /// How long the command waits until all shards have saved. In [1 s, 24 h].
  absl::Duration timeout = absl::Minutes(1);
};

/// Runs a grid of runs, or says how far it is.
struct LabArguments {
  enum class Action { kRun, kStatus, kReport, kReplay };
  Action action = Action::kRun;

  /// The path of the grid's file; for `replay`, the directory that a run has left.
  std::string grid;

  /// Settings of all cells; for `replay`, what would have been set instead.
  std::vector<std::string> overrides;

  /// For `replay`: how many threads compute.
  uint32_t threads = 1;

  /// The lab directory. If empty, runs/lab-<the grid's name>.
  std::string directory;

  /// The directory of ps_lab, ps_server and ps_worker. If empty, psctl looks for them itself.
  std::string bin_dir;

  /// Set if results of other builds of the programs count where the present one has none.
  bool takes_any_build = false;

  /// Set if `run` takes only cells that have failed, or if it only says what cells would cost.
  bool only_failed = false;
  bool is_dry = false;

  /// How `status` prints.
  OutputFormat format = OutputFormat::kTable;
};

struct DoctorArguments {
  std::string coordinator;
  SecuritySpec security;
  OutputFormat format = OutputFormat::kTable;
};

/// Prints the schema of run.yaml.
struct ConfigSchemaArguments {};

enum class Shell { kBash, kZsh, kFish };

struct CompletionArguments {
  Shell shell = Shell::kBash;
};

/// Prints candidates for the last of `words`, which are the words after `psctl`.
struct CompleteArguments {
  std::vector<std::string> words;
};

using Arguments =
    std::variant<RunArguments, NodeArguments, SlurmArguments, ValidateArguments,
                 ConfigInitArguments, ConfigShowArguments, ConfigSchemaArguments, EvaluateArguments,
                 CompareArguments, PlotArguments, PlanArguments, LabArguments, StatusArguments,
                 EventsArguments, StopArguments, ChangeArguments, PullArguments, CertsInitArguments,
                 CertsShowArguments, CertsRenewArguments, CheckpointArguments, SaveArguments,
                 DrainArguments, DoctorArguments, CompletionArguments, CompleteArguments>;

/// Returns the chosen command with its arguments, or the code to exit with at once. In the latter
/// case it has printed help or version to stdout, or the errors in the arguments to stderr.
std::variant<Arguments, ExitCode> ParseCommandLine(int argc, const char* const* argv);

/// Returns all commands that help shows; the first is psctl itself.
std::vector<CommandDescription> DescribeCommands();

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMMAND_LINE_H_
