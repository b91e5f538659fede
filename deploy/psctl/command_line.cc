#include "deploy/psctl/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

#include "common/config/scalar_types.h"
#include "common/config/suggestion.h"
#include "common/config/unexpected_arguments.h"
#include "common/process/version.h"
#include "deploy/psctl/checkpoint_options.h"
#include "deploy/psctl/command_examples.h"
#include "deploy/psctl/completion/describe_app.h"
#include "deploy/psctl/lab_options.h"
#include "deploy/psctl/node_options.h"
#include "deploy/psctl/options.h"
#include "deploy/psctl/plan_options.h"

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
  NodeArguments node;
  SlurmArguments slurm;
  ValidateArguments validate;
  ConfigInitArguments init;
  ConfigShowArguments show;
  ConfigSchemaArguments schema;
  EvaluateArguments evaluate;
  CompareArguments compare;
  PlotArguments plot;
  PlanArguments plan;
  StatusArguments status;
  EventsArguments events;
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
  LabArguments lab;
  CompletionArguments completion;
  CompleteArguments complete;

  CommandLine();

  /// Returns where the program behind `--` belongs; nullptr if the command takes none.
  std::vector<std::string>* WorkerCommand(std::string_view command);

  /// Returns the arguments of the named command.
  Arguments Chosen() const;

  /// Returns whether the named command takes --set.
  TakesSettings takes_settings() const;

  /// Returns a message about a word that is no command, where a command should be; empty if there
  /// is none.
  std::string UnknownCommand() const;

 private:
  /// A command, and the variable of this object that has its arguments.
  struct Command {
    const CLI::App* app;
    std::function<Arguments()> arguments;
  };

  /// Adds commands that follow this word.
  CLI::App& AddGroup(const char* name, const char* doc, const char* footer);

  /// Adds a command to `group`, with the end of its help; without one, it has that of the group.
  /// `arguments` is a variable of this object.
  template <typename T>
  CLI::App& AddCommand(CLI::App& group, const char* name, const char* doc, const T& arguments,
                       const char* footer = nullptr) {
    CLI::App* const command = group.add_subcommand(name, doc);
    if (footer != nullptr) command->footer(footer);
    commands_.push_back({command, [&arguments] { return Arguments(arguments); }});
    return *command;
  }

  void AddRun();
  void AddValidate();
  void AddConfigCommands();
  void AddEvaluate();
  void AddComparison();
  void AddStatus();
  void AddEvents();
  void AddStop();
  void AddDrain();
  void AddChange();
  void AddPull();
  void AddCerts();
  void AddCheckpoints();
  void AddDoctor();
  void AddLab();
  void AddCompletion();

  std::vector<const CLI::App*> groups_;
  std::vector<Command> commands_;
};

CommandLine::CommandLine() {
  app.set_version_flag("--version", VersionLine("psctl"));
  app.require_subcommand(1);
  app.footer(kFooter);
  AddRun();
  AddNodeOptions(AddCommand(app, "node", "Runs this node's part of a run", node, kNodeExamples),
                 node);
  AddSlurmOptions(
      AddCommand(app, "slurm", "Submits a run as a job of Slurm", slurm, kSlurmExamples), slurm);
  AddValidate();
  AddConfigCommands();
  AddEvaluate();
  AddComparison();
  AddPlanOptions(
      AddCommand(app, "plan", "Predicts speed, staleness and use of links", plan, kPlanExamples),
      plan);
  AddStatus();
  AddEvents();
  AddStop();
  AddDrain();
  AddChange();
  AddPull();
  AddCerts();
  AddCheckpoints();
  AddDoctor();
  AddLab();
  AddCompletion();
}

CLI::App& CommandLine::AddGroup(const char* name, const char* doc, const char* footer) {
  CLI::App* const group = app.add_subcommand(name, doc);
  group->require_subcommand(1);
  group->footer(footer);
  groups_.push_back(group);
  return *group;
}

void CommandLine::AddRun() {
  CLI::App& command =
      AddCommand(app, "run", "Starts servers and workers, waits, sums up", run, kRunExamples);
  AddConfig(command, run.config);
  AddFormat(command, run.format, {OutputFormat::kTable, OutputFormat::kJson, OutputFormat::kYaml});
  command
      .add_option("--run-dir", run.run_dir, "Where the run leaves its files (runs/<name>-<time>)")
      ->type_name("DIR");
  command.add_flag("--push-log", run.push_log, "Writes a line per push into the run directory");
  AddRestart(command, run.restart, run.restart_max);
  command
      .add_option_function<std::string>(
          "--log-format",
          [this](const std::string& format) {
            run.config.overrides.push_back("log.format=" + format);
          },
          "Overrides log.format, of servers, workers and psctl: text, or json lines")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}).description(""));
  command.add_option("--bin-dir", run.bin_dir, "Where ps_server and ps_worker lie")
      ->type_name("DIR");
  AddDuration(command, "--save-timeout", kStopTimeout, run.save_timeout,
              "After Ctrl-C, waits this long for the weights to be saved (30s)");
  AddDuration(command, "--stop-timeout", kStopTimeout, run.stop_timeout,
              "Kills what has not stopped after this time (10s)");
}

void CommandLine::AddValidate() {
  CLI::App& command = AddCommand(app, "validate", "Checks a configuration, says what would run",
                                 validate, kValidateExamples);
  AddConfig(command, validate.config);
  AddFormat(command, validate.format, {OutputFormat::kTable, OutputFormat::kJson});
}

void CommandLine::AddConfigCommands() {
  CLI::App& config = AddGroup("config", "Writes and shows configurations",
                              "See psctl config init --help, show --help and schema --help.");
  CLI::App& init_command =
      AddCommand(config, "init", "Writes a configuration to start from", init, kInitExamples);
  init_command.add_option("file", init.path, "The file to write (run.yaml); - for stdout")
      ->type_name("FILE");
  init_command.add_flag("--force", init.force, "Replaces a file that is there");

  CLI::App& show_command = AddCommand(
      config, "show", "Prints a configuration with everything resolved", show, kShowExamples);
  AddConfig(show_command, show.config);
  AddFormat(show_command, show.format, {OutputFormat::kYaml, OutputFormat::kJson});

  AddCommand(config, "schema", "Prints a JSON Schema of configurations", schema, kSchemaExamples);
}

void CommandLine::AddCompletion() {
  static const std::map<std::string, Shell> kShells = {
      {"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}};
  CLI::App& command = AddCommand(app, "completion", "Prints a script that completes commands",
                                 completion, kCompletionExamples);
  command
      .add_option_function<std::string>(
          "shell", [this](const std::string& name) { completion.shell = kShells.at(name); },
          "The shell it is for")
      ->type_name("bash|zsh|fish")
      ->required()
      ->check([](const std::string& name) {
        return kShells.contains(name) ? "" : "'" + name + "' is none of bash|zsh|fish";
      });

  // Completion scripts call this command. Help does not show commands without a group.
  CLI::App& candidates =
      AddCommand(app, "complete", "Prints candidates for the last word", complete);
  candidates.group("");
  candidates.add_option("words", complete.words, "Behind --: the words behind psctl");
}

void CommandLine::AddEvaluate() {
  CLI::App& command = AddCommand(app, "evaluate", "Measures a saved model on its test set",
                                 evaluate, kEvaluateExamples);
  command.add_option("model", evaluate.model, "A run directory, or a model file")
      ->type_name("RUN_DIR|FILE")
      ->required();
  command
      .add_option("--config", evaluate.config,
                  "The run's settings (the run directory's, or those in the file)")
      ->type_name("RUN.YAML");
  command.add_option("--set", evaluate.overrides, "Overrides one setting; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  AddFormat(command, evaluate.format, {OutputFormat::kTable, OutputFormat::kJson});
  command.add_option("--bin-dir", evaluate.bin_dir, "Where ps_evaluate lies")->type_name("DIR");
}

void CommandLine::AddComparison() {
  const auto add_runs = [](CLI::App& command, std::vector<std::string>& directories) {
    command.add_option("runs", directories, "The directories of finished runs")
        ->type_name("DIR")
        ->required();
  };
  CLI::App& compare_command = AddCommand(
      app, "compare", "Compares finished runs, and repetitions of them", compare, kCompareExamples);
  add_runs(compare_command, compare.directories);
  AddFormat(compare_command, compare.format, {OutputFormat::kTable, OutputFormat::kJson});

  CLI::App& plot_command =
      AddCommand(app, "plot", "Draws finished runs as one SVG picture", plot, kPlotExamples);
  add_runs(plot_command, plot.directories);
  plot_command
      .add_option("--output", plot.output, "The picture to write (the first directory's name.svg)")
      ->type_name("FILE");
}

void CommandLine::AddStatus() {
  CLI::App& command =
      AddCommand(app, "status", "Looks at a running cluster", status, kStatusExamples);
  AddPeer(command, status.coordinator, status.security);
  AddFormat(command, status.format, {OutputFormat::kTable, OutputFormat::kJson});
  CLI::Option* watch =
      command.add_flag("--watch", status.watch, "Shows it again and again until the run is over");
  AddDuration(command, "--interval", kWatchInterval, status.interval,
              "Between two statuses of --watch (1s)")
      ->needs(watch);
  AddDuration(command, "--wait", kWatchWait, status.wait,
              "How long --watch waits for a coordinator that is not there (1m)")
      ->needs(watch);
}

void CommandLine::AddEvents() {
  CLI::App& command = AddCommand(app, "events", "Tells what happened to a running cluster", events,
                                 kEventsExamples);
  AddPeer(command, events.coordinator, events.security);
  AddFormat(command, events.format, {OutputFormat::kText, OutputFormat::kJson});
  CLI::Option* follow =
      command.add_flag("--follow", events.follow, "Goes on telling until the run is over");
  AddDuration(command, "--wait", kWatchWait, events.wait,
              "How long --follow waits for a coordinator that is not there (1m)")
      ->needs(follow);
}

void CommandLine::AddStop() {
  CLI::App& command = AddCommand(
      app, "stop", "Ends a run's training now, and has its weights saved", stop, kStopExamples);
  AddPeer(command, stop.coordinator, stop.security);
}

void CommandLine::AddDrain() {
  CLI::App& command =
      AddCommand(app, "drain", "Ends servers, which first save what durability.level keeps", drain,
                 kDrainExamples);
  AddPeer(command, drain.coordinator, drain.security);
  command.add_option("--server", drain.server, "The shard of the server (all, 0 as the last)")
      ->type_name("NUMBER");
  AddDuration(command, "--timeout", kDrainTimeout, drain.timeout,
              "How long it waits for each server (30s)");
}

void CommandLine::AddChange() {
  CLI::App& policies = AddGroup("policy", "Changes the policy of a run while it trains",
                                "See psctl policy set --help.");
  CLI::App& policy_command =
      AddCommand(policies, "set", "Sets the policy", change, kPolicySetExamples);
  AddPolicyOptions(policy_command, change.settings);
  AddPeer(policy_command, change.coordinator, change.security);

  CLI::App& set_command =
      AddCommand(app, "set", "Changes settings of a run while it trains", change, kSetExamples);
  set_command.add_option("settings", change.settings, "The settings, such as the learning rate")
      ->type_name("KEY=VALUE")
      ->required();
  AddPeer(set_command, change.coordinator, change.security);
}

void CommandLine::AddPull() {
  CLI::App& command =
      AddCommand(app, "pull", "Writes the newest weights of a run to a file", pull, kPullExamples);
  command.add_option("output", pull.output, "The model file to write")
      ->type_name("FILE")
      ->required();
  AddPeer(command, pull.coordinator, pull.security);
  command.add_flag("--force", pull.force, "Replaces a file that is there");
  AddDuration(command, "--timeout", kPullTimeout, pull.timeout,
              "How long it waits for the run's first weights and reads them, in all (1m)");
}

void CommandLine::AddCerts() {
  CLI::App& certs = AddGroup("certs", "Makes, shows and renews certificates of a run",
                             "See psctl certs init --help, show --help and renew --help.");
  const auto add_directory = [](CLI::App& command, std::string& directory) {
    command.add_option("dir", directory, "Where the certificates lie")
        ->type_name("DIR")
        ->required();
  };
  const auto add_days = [](CLI::App& command, uint32_t& days) {
    command.add_option("--days", days, "How long the certificates last (365)")
        ->type_name("DAYS")
        ->check([](const std::string& text) { return ScalarError(kCertificateDays, text); });
  };

  CLI::App& init_command =
      AddCommand(certs, "init", "Makes an authority, and certificates for all members", certs_init,
                 kCertsInitExamples);
  add_directory(init_command, certs_init.directory);
  init_command
      .add_option("--config", certs_init.config, "Takes the run's name, servers and workers there")
      ->type_name("RUN.YAML");
  init_command.add_option("--run", certs_init.run, "The run's name, as in run.yaml")
      ->type_name("NAME");
  init_command
      .add_option("--hosts", certs_init.hosts,
                  "The servers' hosts, one for each shard; several of one are joined by +")
      ->type_name("HOST,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  init_command
      .add_option("--aggregator-hosts", certs_init.aggregator_hosts,
                  "The aggregators' hosts, one for each group; without it, only this machine")
      ->type_name("HOST,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  init_command
      .add_option("--workers", certs_init.workers, "Makes certificates for so many workers")
      ->type_name("NUMBER");
  init_command.add_flag("--any-worker", certs_init.any_worker,
                        "Makes one for workers whose id the coordinator chooses");
  add_days(init_command, certs_init.days);

  CLI::App& show_command =
      AddCommand(certs, "show", "Shows whom certificates are for, and until when", certs_show);
  add_directory(show_command, certs_show.directory);
  AddFormat(show_command, certs_show.format, {OutputFormat::kTable, OutputFormat::kJson});

  CLI::App& renew_command =
      AddCommand(certs, "renew", "Makes certificates last longer, for the same keys", certs_renew);
  add_directory(renew_command, certs_renew.directory);
  add_days(renew_command, certs_renew.days);
}

void CommandLine::AddCheckpoints() {
  const CLI::App* const group = AddCheckpointCommands(app, checkpoint, save);
  groups_.push_back(group);
  for (const CLI::App* command : group->get_subcommands({})) {
    const bool is_save = command->get_name() == "save";
    commands_.push_back(
        {command, [this, is_save] { return is_save ? Arguments(save) : Arguments(checkpoint); }});
  }
}

void CommandLine::AddLab() {
  const CLI::App* const group = AddLabCommands(app, lab);
  groups_.push_back(group);
  for (const CLI::App* command : group->get_subcommands({})) {
    commands_.push_back({command, [this] { return Arguments(lab); }});
  }
}

void CommandLine::AddDoctor() {
  CLI::App& command =
      AddCommand(app, "doctor", "Finds out why a run cannot be reached", doctor, kDoctorExamples);
  AddPeer(command, doctor.coordinator, doctor.security);
  AddFormat(command, doctor.format, {OutputFormat::kTable, OutputFormat::kJson});
}

std::vector<std::string>* CommandLine::WorkerCommand(std::string_view command) {
  if (command == "run") return &run.worker_command;
  if (command == "node") return &node.worker_command;
  return command == "slurm" ? &slurm.worker_command : nullptr;
}

Arguments CommandLine::Chosen() const {
  // The parser has made sure that one is named.
  return std::ranges::find_if(commands_, [](const Command& one) { return one.app->parsed(); })
      ->arguments();
}

TakesSettings CommandLine::takes_settings() const {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return command->get_option_no_throw("--set") == nullptr ? TakesSettings::kOthers
                                                          : TakesSettings::kThisProgram;
}

std::string CommandLine::UnknownCommand() const {
  const auto named = std::ranges::find_if(groups_, &CLI::App::parsed);
  const CLI::App& group = named == groups_.end() ? app : **named;
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
  line.slurm.program = argv[0];
  // The words behind `psctl run … --` are another program's, so that its flags are not psctl's.
  if (std::vector<std::string>* const words = line.WorkerCommand(argc > 1 ? argv[1] : "")) {
    const char* const* const end = argv + argc;
    const char* const* const mark = std::find(argv + 2, end, std::string_view("--"));
    if (mark != end) {
      words->assign(mark + 1, end);
      argc = static_cast<int>(mark - argv);
      if (words->empty()) {
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
