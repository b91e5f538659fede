#include "deploy/psctl/run/worker_program.h"

#include <fmt/format.h>

#include <utility>

#include "deploy/psctl/run/program_locations.h"

namespace slipstream {

absl::StatusOr<std::vector<std::string>> WorkerProgramOf(std::vector<std::string> command,
                                                         const RunSpec& spec,
                                                         const std::string& example) {
  if (!command.empty()) {
    absl::StatusOr<std::string> program = FindOnPath(command.front());
    if (!program.ok()) return program.status();
    command.front() = *std::move(program);
  } else if (spec.data.from == SuppliedBy::kWorkers) {
    return absl::InvalidArgumentError(
        fmt::format("the workers bring their own examples (data.from: workers), so name their "
                    "program: {} -- python3 train.py",
                    example));
  }
  return command;
}

absl::Duration FinishTimeout(const RunSpec& spec, bool is_own_program) {
  if (spec.run.finish_timeout > absl::ZeroDuration()) return spec.run.finish_timeout;
  return is_own_program ? absl::InfiniteDuration() : absl::Seconds(10);
}

}  // namespace slipstream
