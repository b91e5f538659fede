// ps_lab works with a run's net and rules without a cluster. psctl starts it.

#include <array>
#include <string_view>

#include "common/process/exit_code.h"
#include "common/process/guarded_main.h"
#include "common/process/output_text.h"
#include "common/process/version.h"
#include "common/rpc/library_settings.h"
#include "deploy/lab/measure_command.h"
#include "deploy/lab/replay_command.h"
#include "deploy/lab/run_command.h"

namespace slipstream {
namespace {

struct LabCommand {
  std::string_view name;

  /// Takes the words from the command's name on. Returns the exit code.
  int (*run)(int argc, char** argv);
};

constexpr std::array kCommands = {LabCommand{"measure", MeasureCommand},
                                  LabCommand{"replay", ReplayCommand},
                                  LabCommand{"run", RunVirtualCommand}};

int Main(int argc, char** argv) {
  TuneForTransfers();
  const std::string_view word = argc > 1 ? argv[1] : "";
  for (const LabCommand& command : kCommands) {
    if (word == command.name) return command.run(argc - 1, argv + 1);
  }
  std::string text = "Commands:";
  for (const LabCommand& command : kCommands) text += " " + std::string(command.name);
  text += "; each has --help\n";
  if (word == "--version") WriteToStdout(VersionLine("ps_lab") + "\n");
  if (word == "--help") WriteToStdout(text);
  if (word == "--version" || word == "--help") return static_cast<int>(ExitCode::kOk);
  WriteToStderr("ps_lab: error: there is no command '" + std::string(word) + "'\n" + text);
  return static_cast<int>(ExitCode::kUsage);
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  return slipstream::GuardedMain("ps_lab", [&] { return slipstream::Main(argc, argv); });
}
