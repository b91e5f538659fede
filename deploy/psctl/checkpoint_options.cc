#include "deploy/psctl/checkpoint_options.h"

#include "common/base/limits.h"
#include "deploy/psctl/command_examples.h"
#include "deploy/psctl/options.h"

namespace slipstream {
namespace {

constexpr DurationType kSaveTimeout = {absl::Seconds(1), absl::Hours(24)};

}  // namespace

CLI::App* AddCheckpointCommands(CLI::App& app, CheckpointArguments& arguments,
                                SaveArguments& save) {
  using Action = CheckpointArguments::Action;
  CLI::App* const commands =
      app.add_subcommand("checkpoint", "Lists, checks, exports and orders checkpoints");
  commands->require_subcommand(1);
  commands->footer(
      "See psctl checkpoint ls --help, verify --help, inspect --help, export --help, reshard "
      "--help and save --help.");
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
  AddFormat(
      *add("ls", Action::kLs, "Lists the checkpoints of runs and shards", kCheckpointListExamples),
      arguments.format, {OutputFormat::kTable, OutputFormat::kJson});
  add("verify", Action::kVerify, "Reads and checks all of each checkpoint",
      kCheckpointVerifyExamples)
      ->add_flag("--replay", arguments.replay,
                 "Redoes the log behind each checkpoint too, and compares it with the next one");
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

  CLI::App* const saves =
      commands->add_subcommand("save", "Has all servers of a run save a checkpoint now");
  AddPeer(*saves, save.coordinator, save.security);
  AddDuration(*saves, "--timeout", kSaveTimeout, save.timeout,
              "How long it waits until all shards have saved (1m)");
  saves->footer(kCheckpointSaveExamples);

  CLI::App* const reshards =
      add("reshard", Action::kReshard, "Cuts a set of checkpoints for another number of servers",
          kCheckpointReshardExamples);
  reshards->add_option("--servers", arguments.servers, "The number of servers")
      ->type_name("N")
      ->required()
      ->check(CLI::Range(uint32_t{1}, kServersMax));
  reshards->add_option("--output", arguments.output, "The directory to write to")
      ->type_name("DIR")
      ->required();
  reshards->add_flag("--whole-tensors", arguments.keeps_tensors_whole,
                     "Cuts between tensors, as runs with optimizer.kind lamb do");
  return commands;
}

}  // namespace slipstream
