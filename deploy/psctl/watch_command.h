#ifndef SLIPSTREAM_DEPLOY_PSCTL_WATCH_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_WATCH_COMMAND_H_

#include <string>
#include <string_view>

#include "common/run/run_spec.h"

namespace slipstream {

/// The command by which another terminal watches the run of this coordinator (host:port). It can be
/// pasted into a shell in any directory: files of `security` are named by absolute paths, and so is
/// psctl, unless the shell finds it on PATH. `program` is by what psctl was started.
std::string WatchCommand(std::string_view program, std::string_view coordinator,
                         const SecuritySpec& security);

/// How a shell in any directory can start `program`, by which this process was started: "psctl" if
/// that is what the directories of `search_path` (as in PATH) have under its name, else an absolute
/// path.
std::string ProgramAnywhere(std::string_view program, std::string_view search_path);

/// `text` as one word of a shell's command line, in quotes if it needs them.
std::string ShellWord(std::string_view text);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_WATCH_COMMAND_H_
