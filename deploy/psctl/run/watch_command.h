#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_COMMAND_H_

#include <string>
#include <string_view>

#include "common/settings/run_spec.h"

namespace slipstream {

/// Returns the command that watches the run of this coordinator (host:port) from another terminal.
/// It can be pasted into a shell in any directory: files of `security` have absolute paths, and so
/// does psctl, unless the shell finds it on PATH. `program` is the word that started psctl.
std::string WatchCommand(std::string_view program, std::string_view coordinator,
                         const SecuritySpec& security);

/// Returns how a shell in any directory can start this process's program, which was started as
/// `program`: its name, if the directories of `search_path` (as in PATH) lead to it, and else an
/// absolute path.
std::string ProgramAnywhere(std::string_view program, std::string_view search_path);

/// Returns `text` as one word of a shell's command line, in quotes if it needs them.
std::string ShellWord(std::string_view text);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_WATCH_COMMAND_H_
