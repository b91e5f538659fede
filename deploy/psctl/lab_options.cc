#include "deploy/psctl/lab_options.h"

#include "deploy/psctl/command_examples.h"
#include "deploy/psctl/options.h"

namespace slipstream {

CLI::App* AddLabCommands(CLI::App& app, LabArguments& arguments) {
  using Action = LabArguments::Action;
  CLI::App* const commands =
      app.add_subcommand("lab", "Runs grids of runs, and makes tables and plots of them");
  commands->require_subcommand(1);
  commands->footer("See psctl lab run --help, status --help and report --help.");
  const auto add = [commands, &arguments](const char* name, Action action, const char* doc,
                                          const char* examples) {
    CLI::App* const command = commands->add_subcommand(name, doc);
    command->add_option("grid", arguments.grid, "The grid's file")
        ->type_name("GRID.YAML")
        ->required();
    command->add_option("--dir", arguments.directory, "Where the cells lie (runs/lab-<name>)")
        ->type_name("DIR");
    command->callback([action, &arguments] { arguments.action = action; });
    command->footer(examples);
    return command;
  };
  CLI::App& run = *add("run", Action::kRun, "Runs the cells that have no result", kLabRunExamples);
  run.add_option("--bin-dir", arguments.bin_dir, "Where ps_lab, ps_server and ps_worker lie")
      ->type_name("DIR");
  run.add_option_function<std::string>(
         "--only", [&arguments](const std::string&) { arguments.only_failed = true; },
         "Takes only some of the cells: failed")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"failed"}).description(""));
  run.add_flag("--dry-run", arguments.is_dry, "Only says what each cell costs");
  AddFormat(*add("status", Action::kStatus, "Says how far the cells are", kLabStatusExamples),
            arguments.format, {OutputFormat::kTable, OutputFormat::kJson});
  add("report", Action::kReport, "Writes the tables and plots anew", kLabReportExamples);
  return commands;
}

}  // namespace slipstream
