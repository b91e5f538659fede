#include <variant>

#include "common/process/exit_code.h"
#include "common/process/guarded_main.h"
#include "common/rpc/library_settings.h"
#include "deploy/psctl/certs/commands.h"
#include "deploy/psctl/checkpoint/command.h"
#include "deploy/psctl/command_line.h"
#include "deploy/psctl/compare/commands.h"
#include "deploy/psctl/completion/command.h"
#include "deploy/psctl/config/commands.h"
#include "deploy/psctl/lab/command.h"
#include "deploy/psctl/node/command.h"
#include "deploy/psctl/operate/commands.h"
#include "deploy/psctl/operate/doctor.h"
#include "deploy/psctl/operate/pull.h"
#include "deploy/psctl/plan/command.h"
#include "deploy/psctl/run/command.h"
#include "deploy/psctl/run/evaluate_command.h"
#include "deploy/psctl/slurm/command.h"
#include "deploy/psctl/status/command.h"

namespace slipstream {
namespace {

/// Carries out what the command line asked for.
struct Dispatch {
  int operator()(const RunArguments& arguments) const { return RunCommand(arguments); }
  int operator()(const NodeArguments& arguments) const { return NodeCommand(arguments); }
  int operator()(const SlurmArguments& arguments) const { return SlurmCommand(arguments); }
  int operator()(const ValidateArguments& arguments) const { return ValidateCommand(arguments); }
  int operator()(const ConfigInitArguments& arguments) const {
    return ConfigInitCommand(arguments);
  }
  int operator()(const ConfigShowArguments& arguments) const {
    return ConfigShowCommand(arguments);
  }
  int operator()(const EvaluateArguments& arguments) const { return EvaluateCommand(arguments); }
  int operator()(const CompareArguments& arguments) const { return CompareCommand(arguments); }
  int operator()(const PlotArguments& arguments) const { return PlotCommand(arguments); }
  int operator()(const ConfigSchemaArguments&) const { return ConfigSchemaCommand(); }
  int operator()(const PlanArguments& arguments) const { return PlanCommand(arguments); }
  int operator()(const StatusArguments& arguments) const { return StatusCommand(arguments); }
  int operator()(const EventsArguments& arguments) const { return EventsCommand(arguments); }
  int operator()(const StopArguments& arguments) const { return StopCommand(arguments); }
  int operator()(const ChangeArguments& arguments) const { return ChangeCommand(arguments); }
  int operator()(const PullArguments& arguments) const { return PullCommand(arguments); }
  int operator()(const CertsInitArguments& arguments) const { return CertsInitCommand(arguments); }
  int operator()(const CertsShowArguments& arguments) const { return CertsShowCommand(arguments); }
  int operator()(const CertsRenewArguments& arguments) const {
    return CertsRenewCommand(arguments);
  }
  int operator()(const CheckpointArguments& arguments) const {
    return CheckpointCommand(arguments);
  }
  int operator()(const SaveArguments& arguments) const { return SaveCommand(arguments); }
  int operator()(const DrainArguments& arguments) const { return DrainCommand(arguments); }
  int operator()(const DoctorArguments& arguments) const { return DoctorCommand(arguments); }
  int operator()(const LabArguments& arguments) const { return LabCommand(arguments); }
  int operator()(const CompletionArguments& arguments) const {
    return CompletionCommand(arguments);
  }
  int operator()(const CompleteArguments& arguments) const { return CompleteCommand(arguments); }
};

int Main(int argc, char** argv) {
  const auto parsed = ParseCommandLine(argc, argv);
  if (const auto* code = std::get_if<ExitCode>(&parsed)) return static_cast<int>(*code);
  TakeLibraryLogs();
  UseSystemResolver();
  return std::visit(Dispatch(), std::get<Arguments>(parsed));
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  return slipstream::GuardedMain("psctl", [&] { return slipstream::Main(argc, argv); });
}
