#include "deploy/psctl/completion_command.h"

#include <fmt/format.h>

#include <string>

#include "common/process/exit_code.h"
#include "deploy/psctl/completion/completion.h"

namespace slipstream {

int CompletionCommand(const CompletionArguments& arguments) {
  const CompletionTable table = MakeCompletionTable(DescribeCommands());
  std::string script;
  switch (arguments.shell) {
    case Shell::kBash:
      script = BashCompletion(table);
      break;
    case Shell::kZsh:
      script = ZshCompletion(table);
      break;
    case Shell::kFish:
      script = FishCompletion(table);
      break;
  }
  fmt::print("{}", script);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace slipstream
