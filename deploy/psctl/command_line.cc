#include "deploy/psctl/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string_view>

#include "common/config/scalar_types.h"
#include "common/config/suggestion.h"
#include "common/config/unexpected_arguments.h"
#include "common/process/version.h"
#include "deploy/psctl/checkpoint_options.h"
#include "deploy/psctl/command_examples.h"
#include "deploy/psctl/completion/describe_app.h"
#include "deploy/psctl/options.h"

namespace slipstream {
namespace {

constexpr CountType kCertificateDays = {1, 3650};

constexpr DurationType kWatchInterval = {absl::Milliseconds(100), absl::Hours(1)};
constexpr DurationType kWatchWait = {absl::ZeroDuration(), absl::Hours(24)};
constexpr DurationType kPullTimeout = {absl::Seconds(1), absl::Hours(24)};
constexpr DurationType kDrainTimeout = {absl::Seconds(1), absl::Hours(1)};
constexpr DurationType kStopTimeout = {absl::ZeroDuration(), absl::Hours(1)};

/// The parser, and the arguments that it fills in.
struct CommandLine {
  CLI::App app{"Runs Slipstream clusters on this machine and looks at running ones.", "psctl"};
  RunArguments run;
  ValidateArguments validate;
  ConfigInitArguments init;
  ConfigShowArguments show;
  EvaluateArguments evaluate;
  CompareArguments compare;
  PlotArguments plot;
  StatusArguments status;
  StopArguments stop;
  ChangeArguments change;
  PullArguments pull;
  CertsInitArguments certs_init;
  CertsShowArguments certs_show;
  CertsRenewArguments certs_renew;
  CheckpointArguments checkpoint;
  SaveArguments save;
  DrainArguments drain;
  DoctorArguments doctor;
  CompletionArguments completion;
  CompleteArguments complete;

  CLI::App* config_commands = nullptr;
  CLI::App* run_command = nullptr;
  CLI::App* validate_command = nullptr;
  CLI::App* init_command = nullptr;
  CLI::App* show_command = nullptr;
  CLI::App* evaluate_command = nullptr;
  CLI::App* compare_command = nullptr;
  CLI::App* plot_command = nullptr;
  CLI::App* schema_command = nullptr;
  CLI::App* stop_command = nullptr;
  CLI::App* policy_commands = nullptr;
  CLI::App* policy_set_command = nullptr;
  CLI::App* set_command = nullptr;
  CLI::App* pull_command = nullptr;
  CLI::App* certs_commands = nullptr;
  CLI::App* certs_init_command = nullptr;
  CLI::App* certs_show_command = nullptr;
  CLI::App* certs_renew_command = nullptr;
  CLI::App* checkpoint_commands = nullptr;
  CLI::App* drain_command = nullptr;
  CLI::App* doctor_command = nullptr;
  CLI::App* completion_command = nullptr;
  CLI::App* complete_command = nullptr;

  CommandLine();
  Arguments Chosen() const;

  /// Returns whether the named command takes --set.
  TakesSettings takes_settings() const;

  /// Returns a message about a word that is no command, where a command should be; empty if there
  /// is none.
  std::string UnknownCommand() const;

 private:
  void AddRun();
  void AddValidate();
  void AddConfigCommands();
  void AddEvaluate();
  void AddComparison();
  void AddStatus();
  void AddStop();
  void AddDrain();
  void AddChange();
  void AddPull();
  void AddCerts();
  void AddDoctor();
  void AddCompletion();
};

CommandLine::CommandLine() {
  app.set_version_flag("--version", std::string("psctl ") + std::string(kVersion));
  app.require_subcommand(1);
  app.footer(kFooter);
  AddRun();
  AddValidate();
  AddConfigCommands();
  AddEvaluate();
  AddComparison();
  AddStatus();
  AddStop();
  AddDrain();
  AddChange();
  AddPull();
  AddCerts();
  checkpoint_commands = AddCheckpointCommands(app, checkpoint, save);
  AddFormat(*checkpoint_commands->get_subcommand("ls"), checkpoint.format,
            {OutputFormat::kTable, OutputFormat::kJson});
  AddDoctor();
  AddCompletion();
}

void CommandLine::AddRun() {
  run_command = app.add_subcommand("run", "Starts servers and workers, waits, sums up");
  AddConfig(*run_command, run.config);
  AddFormat(*run_command, run.format,
            {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kYaml});
  run_command
      ->add_option("--run-dir", run.run_dir, "Where the run leaves its files (runs/<name>-<time>)")
      ->type_name("DIR");
  run_command->add_flag("--push-log", run.push_log,
                        "Writes a line per push into the run directory");
  run_command->add_flag("--restart", run.starts_again,
                        "Starts servers again that end during the run (durability.level: "
                        "checkpoint or synced)");
  run_command
      ->add_option_function<std::string>(
          "--log-format",
          [this](const std::string& format) {
            run.config.overrides.push_back("log.format=" + format);
          },
          "Overrides log.format, of servers, workers and psctl: text, or json lines")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}).description(""));
  run_command->add_option("--bin-dir", run.bin_dir, "Where ps_server and ps_worker lie")
      ->type_name("DIR");
  AddDuration(*run_command, "--save-timeout", kStopTimeout, run.save_timeout,
              "After Ctrl-C, waits this long for the weights to be saved (30s)");
  AddDuration(*run_command, "--stop-timeout", kStopTimeout, run.stop_timeout,
              "Kills what has not stopped after this time (10s)");
  run_command->footer(kRunExamples);
}

void CommandLine::AddValidate() {
  validate_command = app.add_subcommand("validate", "Checks a configuration, says what would run");
  AddConfig(*validate_command, validate.config);
  AddFormat(*validate_command, validate.format, {OutputFormat::kTable, OutputFormat::kJson});
  validate_command->footer(kValidateExamples);
}

void CommandLine::AddConfigCommands() {
  CLI::App* config = app.add_subcommand("config", "Writes and shows configurations");
  config_commands = config;
  config->require_subcommand(1);
  config->footer("See psctl config init --help, show --help and schema --help.");

  init_command = config->add_subcommand("init", "Writes a configuration to start from");
  init_command->add_option("file", init.path, "The file to write (run.yaml); - for stdout")
      ->type_name("FILE");
  init_command->add_flag("--force", init.force, "Replaces a file that is there");
  init_command->footer(kInitExamples);

  show_command = config->add_subcommand("show", "Prints a configuration with everything resolved");
  AddConfig(*show_command, show.config);
  AddFormat(*show_command, show.format, {OutputFormat::kYaml, OutputFormat::kJson});
  show_command->footer(kShowExamples);

  schema_command = config->add_subcommand("schema", "Prints a JSON Schema of configurations");
  schema_command->footer(kSchemaExamples);
}

void CommandLine::AddCompletion() {
  static const std::map<std::string, Shell> kShells = {
      {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};
  completion_command = app.add_subcommand("completion", "Prints a script that completes commands");
  completion_command
      ->add_option_function<std::string>(
          "shell", [this](const std::string& name) { completion.shell = kShells.at(name); },
          "The shell it is for")
      ->type_name("bash|zsh|fish")
      ->required()
      ->check([](const std::string& name) {
        return kShells.contains(name) ? "" : "'" + name + "' is none of bash|zsh|fish";
      });
  completion_command->footer(kCompletionExamples);

  // Completion scripts call this command. Help does not show commands without a group.
  complete_command = app.add_subcommand("complete", "Prints candidates for the last word");
  complete_command->group("");
  complete_command->add_option("words", complete.words, "Behind --: the words behind psctl");
}

void CommandLine::AddEvaluate() {
  evaluate_command = app.add_subcommand("evaluate", "Measures a saved model on its test set");
  evaluate_command->add_option("model", evaluate.model, "A run directory, or a model file")
      ->type_name("RUN_DIR|FILE")
      ->required();
  evaluate_command
      ->add_option("--config", evaluate.config,
                   "The run's settings (the run directory's, or those in the file)")
      ->type_name("RUN.YAML");
  evaluate_command
      ->add_option("--set", evaluate.overrides, "Overrides one setting; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  AddFormat(*evaluate_command, evaluate.format, {OutputFormat::kTable, OutputFormat::kJson});
  evaluate_command->add_option("--bin-dir", evaluate.bin_dir, "Where ps_evaluate lies")
      ->type_name("DIR");
  evaluate_command->footer(kEvaluateExamples);
}

void CommandLine::AddComparison() {
  const auto add = [this](const char* name, const char* doc,
                          std::vector<std::string>& directories) {
    CLI::App* const command = app.add_subcommand(name, doc);
    command->add_option("runs", directories, "The directories of finished runs")
        ->type_name("DIR")
        ->required();
    return command;
  };
  compare_command =
      add("compare", "Compares finished runs, and repetitions of them", compare.directories);
  AddFormat(*compare_command, compare.format, {OutputFormat::kTable, OutputFormat::kJson});
  compare_command->footer(kCompareExamples);

  plot_command = add("plot", "Draws finished runs as one SVG picture", plot.directories);
  plot_command
      ->add_option("--output", plot.output, "The picture to write (the first directory's name.svg)")
      ->type_name("FILE");
  plot_command->footer(kPlotExamples);
}

void CommandLine::AddStatus() {
  CLI::App* command = app.add_subcommand("status", "Looks at a running cluster");
  AddPeer(*command, status.coordinator, status.security);
  AddFormat(*command, status.format, {OutputFormat::kTable, OutputFormat::kJson});
  CLI::Option* watch =
      command->add_flag("--watch", status.watch, "Shows it again and again until the run is over");
  AddDuration(*command, "--interval", kWatchInterval, status.interval,
              "Between two statuses of --watch (1s)")
      ->needs(watch);
  AddDuration(*command, "--wait", kWatchWait, status.wait,
              "How long --watch waits for a coordinator that is not there (1m)")
      ->needs(watch);
  command->footer(kStatusExamples);
}

void CommandLine::AddStop() {
  stop_command = app.add_subcommand("stop", "Ends a run's training now, and has its weights saved");
  AddPeer(*stop_command, stop.coordinator, stop.security);
  stop_command->footer(kStopExamples);
}

void CommandLine::AddDrain() {
  drain_command =
      app.add_subcommand("drain", "Ends servers, which first save what durability.level keeps");
  AddPeer(*drain_command, drain.coordinator, drain.security);
  drain_command
      ->add_option("--server", drain.server, "The shard of the server (all, 0 as the last)")
      ->type_name("NUMBER");
  AddDuration(*drain_command, "--timeout", kDrainTimeout, drain.timeout,
              "How long it waits for each server (30s)");
  drain_command->footer(kDrainExamples);
}

void CommandLine::AddChange() {
  policy_commands = app.add_subcommand("policy", "Changes the policy of a run while it trains");
  policy_commands->require_subcommand(1);
  policy_commands->footer("See psctl policy set --help.");
  policy_set_command = policy_commands->add_subcommand("set", "Sets the policy");
  AddPolicyOptions(*policy_set_command, change.settings);
  AddPeer(*policy_set_command, change.coordinator, change.security);
  policy_set_command->footer(kPolicySetExamples);

  set_command = app.add_subcommand("set", "Changes settings of a run while it trains");
  set_command->add_option("settings", change.settings, "The settings, such as the learning rate")
      ->type_name("KEY=VALUE")
      ->required();
  AddPeer(*set_command, change.coordinator, change.security);
  set_command->footer(kSetExamples);
}

void CommandLine::AddPull() {
  pull_command = app.add_subcommand("pull", "Writes the newest weights of a run to a file");
  pull_command->add_option("output", pull.output, "The model file to write")
      ->type_name("FILE")
      ->required();
  AddPeer(*pull_command, pull.coordinator, pull.security);
  pull_command->add_flag("--force", pull.force, "Replaces a file that is there");
  AddDuration(*pull_command, "--timeout", kPullTimeout, pull.timeout,
              "How long it waits for the run's first weights and reads them, in all (1m)");
  pull_command->footer(kPullExamples);
}

void CommandLine::AddCerts() {
  certs_commands = app.add_subcommand("certs", "Makes, shows and renews certificates of a run");
  certs_commands->require_subcommand(1);
  certs_commands->footer("See psctl certs init --help, show --help and renew --help.");
  const auto add = [this](const char* name, const char* doc, std::string& directory) {
    CLI::App* const command = certs_commands->add_subcommand(name, doc);
    command->add_option("dir", directory, "Where the certificates lie")
        ->type_name("DIR")
        ->required();
    return command;
  };
  const auto add_days = [](CLI::App& command, uint32_t& days) {
    command.add_option("--days", days, "How long the certificates last (365)")
        ->type_name("DAYS")
        ->check([](const std::string& text) { return ScalarError(kCertificateDays, text); });
  };

  certs_init_command =
      add("init", "Makes an authority, and certificates for all members", certs_init.directory);
  certs_init_command
      ->add_option("--config", certs_init.config, "Takes the run's name, servers and workers there")
      ->type_name("RUN.YAML");
  certs_init_command->add_option("--run", certs_init.run, "The run's name, as in run.yaml")
      ->type_name("NAME");
  certs_init_command
      ->add_option("--hosts", certs_init.hosts,
                   "The servers' hosts, one for each shard; several of one are joined by +")
      ->type_name("HOST,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  certs_init_command
      ->add_option("--aggregator-hosts", certs_init.aggregator_hosts,
                   "The aggregators' hosts, one for each group; without it, only this machine")
      ->type_name("HOST,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  certs_init_command
      ->add_option("--workers", certs_init.workers, "Makes certificates for so many workers")
      ->type_name("NUMBER");
  certs_init_command->add_flag("--any-worker", certs_init.any_worker,
                               "Makes one for workers whose id the coordinator chooses");
  add_days(*certs_init_command, certs_init.days);
  certs_init_command->footer(kCertsInitExamples);

  certs_show_command =
      add("show", "Shows whom certificates are for, and until when", certs_show.directory);
  AddFormat(*certs_show_command, certs_show.format, {OutputFormat::kTable, OutputFormat::kJson});
  certs_renew_command =
      add("renew", "Makes certificates last longer, for the same keys", certs_renew.directory);
  add_days(*certs_renew_command, certs_renew.days);
}

void CommandLine::AddDoctor() {
  doctor_command = app.add_subcommand("doctor", "Finds out why a run cannot be reached");
  AddPeer(*doctor_command, doctor.coordinator, doctor.security);
  AddFormat(*doctor_command, doctor.format, {OutputFormat::kTable, OutputFormat::kJson});
  doctor_command->footer(kDoctorExamples);
}

Arguments CommandLine::Chosen() const {
  if (run_command->parsed()) return run;
  if (validate_command->parsed()) return validate;
  if (init_command->parsed()) return init;
  if (show_command->parsed()) return show;
  if (evaluate_command->parsed()) return evaluate;
  if (compare_command->parsed()) return compare;
  if (plot_command->parsed()) return plot;
  if (schema_command->parsed()) return ConfigSchemaArguments();
  if (stop_command->parsed()) return stop;
  if (policy_set_command->parsed() || set_command->parsed()) return change;
  if (pull_command->parsed()) return pull;
  if (certs_init_command->parsed()) return certs_init;
  if (certs_show_command->parsed()) return certs_show;
  if (certs_renew_command->parsed()) return certs_renew;
  if (checkpoint_commands->got_subcommand("save")) return save;
  if (checkpoint_commands->parsed()) return checkpoint;
  if (drain_command->parsed()) return drain;
  if (doctor_command->parsed()) return doctor;
  if (completion_command->parsed()) return completion;
  if (complete_command->parsed()) return complete;
  return status;
}

TakesSettings CommandLine::takes_settings() const {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return command->get_option_no_throw("--set") == nullptr ? TakesSettings::kOthers
                                                          : TakesSettings::kThisProgram;
}

std::string CommandLine::UnknownCommand() const {
  const CLI::App& group = config_commands->parsed()       ? *config_commands
                          : certs_commands->parsed()      ? *certs_commands
                          : checkpoint_commands->parsed() ? *checkpoint_commands
                          : policy_commands->parsed()     ? *policy_commands
                                                          : app;
  if (!group.get_subcommands().empty()) return "";
  for (const std::string& word : group.remaining()) {
    if (word.starts_with('-')) continue;
    std::vector<std::string> names;
    for (const CLI::App* command : group.get_subcommands({})) {
      if (!command->get_group().empty()) names.push_back(command->get_name());
    }
    return "there is no command '" + word + "'" + DidYouMean(word, names);
  }
  return "";
}

}  // namespace

std::vector<CommandDescription> DescribeCommands() { return DescribeApp(CommandLine().app); }

std::variant<Arguments, ExitCode> ParseCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  line.run.program = argv[0];
  // The words behind `psctl run … --` are another program's, so that its flags are not psctl's.
  if (argc > 1 && std::string_view(argv[1]) == "run") {
    const char* const* const end = argv + argc;
    const char* const* const mark = std::find(argv + 2, end, std::string_view("--"));
    if (mark != end) {
      line.run.worker_command.assign(mark + 1, end);
      argc = static_cast<int>(mark - argv);
      if (line.run.worker_command.empty()) {
        line.app.exit(CLI::ValidationError("after -- comes the program that the workers run"));
        return ExitCode::kUsage;
      }
    }
  }
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // CLI11 also throws for help and version.
    const std::string unknown = line.UnknownCommand();
    if (error.get_exit_code() != 0 && !unknown.empty()) {
      line.app.exit(CLI::ValidationError(unknown));
      return ExitCode::kUsage;
    }
    const bool is_answer = ReportParseError(line.app, error, argc, argv, line.takes_settings());
    return is_answer ? ExitCode::kOk : ExitCode::kUsage;
  }
  return line.Chosen();
}

}  // namespace slipstream
