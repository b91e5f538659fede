#include "deploy/psctl/checkpoint_options.h"

#include "deploy/psctl/command_examples.h"

namespace slipstream {

CLI::App* AddCheckpointCommands(CLI::App& app, CheckpointArguments& arguments) {
  using Action = CheckpointArguments::Action;
  CLI::App* const commands =
      app.add_subcommand("checkpoint", "Lists, checks and exports checkpoints");
  commands->require_subcommand(1);
  commands->footer(
      "See psctl checkpoint ls --help, verify --help, inspect --help and export --help.");
  const auto add = [commands, &arguments](const char* name, Action action, const char* doc,
                                          const char* examples) {
    CLI::App* const command = commands->add_subcommand(name, doc);
    command->add_option("dir", arguments.directory, "Where the checkpoints lie")
        ->type_name("DIR")
        ->required();
    command->callback([action, &arguments] { arguments.action = action; });
    command->footer(examples);
    return command;
  };
  add("ls", Action::kLs, "Lists the checkpoints of runs and shards", kCheckpointListExamples);
  add("verify", Action::kVerify, "Reads and checks all of each checkpoint",
      kCheckpointVerifyExamples);
  add("inspect", Action::kInspect, "Shows what one checkpoint holds", kCheckpointInspectExamples);
  CLI::App* const exports =
      add("export", Action::kExport, "Joins the weights of all shards into a model file",
          kCheckpointExportExamples);
  exports->add_option("--out", arguments.output, "The model file to write")
      ->type_name("FILE")
      ->required();
  exports->add_option("--version", arguments.version, "The version to take (the newest)")
      ->type_name("NUMBER");
  exports->add_flag("--force", arguments.force, "Replaces a file that is there");
  return commands;
}

}  // namespace slipstream
