#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMMAND_LINE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/process/exit_code.h"
#include "common/run/run_spec.h"
#include "deploy/psctl/completion/command_description.h"

namespace slipstream {

enum class OutputFormat { kTable, kJson, kYaml };

/// A configuration file and the settings that override it, as `key=value`.
struct ConfigArguments {
  std::string path;
  std::vector<std::string> overrides;
};

struct RunArguments {
  /// By which psctl was started: a path, or a name that the shell found on its PATH.
  std::string program;
  ConfigArguments config;
  OutputFormat format = OutputFormat::kTable;

  /// Empty: a fresh directory under runs/.
  std::string run_dir;
  bool push_log = false;

  /// Empty: psctl looks for the programs itself.
  std::string bin_dir;

  /// How long the weights may take to be measured and saved after a signal. In [0 s, 1 h].
  absl::Duration save_timeout = absl::Seconds(30);

  /// Processes that do not stop when told are killed after this time. In [0 s, 1 h].
  absl::Duration stop_timeout = absl::Seconds(10);
};

struct ValidateArguments {
  ConfigArguments config;
  OutputFormat format = OutputFormat::kTable;
};

struct ConfigInitArguments {
  /// "-": stdout.
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

  /// Empty: the run directory's, or what the file holds.
  std::string config;
  std::vector<std::string> overrides;
  OutputFormat format = OutputFormat::kTable;

  /// Empty: psctl looks for the program itself.
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

  /// The picture to write; empty: the first directory's name with .svg, beside it.
  std::string output;
};

struct StatusArguments {
  std::string coordinator;
  SecuritySpec security;
  OutputFormat format = OutputFormat::kTable;

  /// Again and again until the run is over, every `interval`, in [100 ms, 1 h]. A coordinator that
  /// is not there is waited for, before the first answer and later, for `wait`, in [0 s, 24 h].
  bool watch = false;
  absl::Duration interval = absl::Seconds(1);
  absl::Duration wait = absl::Minutes(1);
};

struct StopArguments {
  std::string coordinator;
  SecuritySpec security;
};

struct CertsInitArguments {
  std::string directory;

  /// The run.yaml that says what the others leave open; empty: none.
  std::string config;
  std::optional<std::string> run;

  /// By shard: the names and addresses of its server, joined by '+'.
  std::vector<std::string> hosts;
  std::optional<uint32_t> workers;

  /// Makes a certificate for workers whose id the coordinator chooses.
  bool any_worker = false;

  /// How long the certificates last. In [1, 3650].
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

/// Prints candidates for the last of the words behind `psctl`.
struct CompleteArguments {
  std::vector<std::string> words;
};

using Arguments =
    std::variant<RunArguments, ValidateArguments, ConfigInitArguments, ConfigShowArguments,
                 ConfigSchemaArguments, EvaluateArguments, CompareArguments, PlotArguments,
                 StatusArguments, StopArguments, CertsInitArguments, CertsShowArguments,
                 CertsRenewArguments, DoctorArguments, CompletionArguments, CompleteArguments>;

/// What to do, or what to exit with at once: help and version are on stdout then, what is wrong
/// with the arguments on stderr.
std::variant<Arguments, ExitCode> ParseCommandLine(int argc, const char* const* argv);

/// Returns every command that help shows; the first is psctl itself.
std::vector<CommandDescription> DescribeCommands();

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMMAND_LINE_H_
