#include "deploy/psctl/lab_options.h"

#include "deploy/psctl/command_examples.h"
#include "deploy/psctl/options.h"

namespace slipstream {

CLI::App* AddLabCommands(CLI::App& app, LabArguments& arguments) {
  using Action = LabArguments::Action;
  CLI::App* const commands =
      app.add_subcommand("lab", "Runs grids of runs, and makes tables and plots of them");
  commands->require_subcommand(1);
  commands->footer("See psctl lab run --help, status --help, report --help and replay --help.");
  const auto add_bin_dir = [&arguments](CLI::App& command) {
    command.add_option("--bin-dir", arguments.bin_dir, "Where ps_lab, ps_server and ps_worker lie")
        ->type_name("DIR");
  };
  const auto add = [commands, &arguments, &add_bin_dir](const char* name, Action action,
                                                        const char* doc, const char* examples) {
    CLI::App* const command = commands->add_subcommand(name, doc);
    command->add_option("grid", arguments.grid, "The grid's file")
        ->type_name("GRID.YAML")
        ->required();
    command->add_option("--dir", arguments.directory, "Where the cells lie (runs/lab-<name>)")
        ->type_name("DIR");
    command->add_option("--set", arguments.overrides, "A setting of all cells; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    add_bin_dir(*command);
    command->add_flag("--any-build", arguments.takes_any_build,
                      "Takes results of other builds, too, where this one has none");
    command->callback([action, &arguments] { arguments.action = action; });
    command->footer(examples);
    return command;
  };
  CLI::App& run = *add("run", Action::kRun, "Runs the cells that have no result", kLabRunExamples);
  run.add_option_function<std::string>(
         "--only", [&arguments](const std::string&) { arguments.only_failed = true; },
         "Takes only some of the cells: failed")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"failed"}).description(""));
  run.add_flag("--dry-run", arguments.is_dry, "Only says what each cell costs");
  AddFormat(*add("status", Action::kStatus, "Says how far the cells are", kLabStatusExamples),
            arguments.format, {OutputFormat::kTable, OutputFormat::kJson});
  add("report", Action::kReport, "Writes the tables and plots anew", kLabReportExamples);
  CLI::App& replay = *commands->add_subcommand("replay", "Redoes a run from its push logs");
  replay.add_option("run_dir", arguments.grid, "The directory that the run has left")
      ->type_name("RUN_DIR")
      ->required();
  replay.add_option("--set", arguments.overrides, "Asks what another setting would have done")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  replay.add_option("--threads", arguments.threads, "How many threads compute (1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  add_bin_dir(replay);
  replay.callback([&arguments] { arguments.action = Action::kReplay; });
  replay.footer(kLabReplayExamples);
  return commands;
}

}  // namespace slipstream
