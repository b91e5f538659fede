#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMPLETION_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMPLETION_H_

#include <string>
#include <vector>

#include "deploy/psctl/completion/command_description.h"

namespace slipstream {

/// The only candidate where the name of a file, or of a directory, is to be completed, which shells
/// do better.
inline constexpr char kCompleteFile[] = ":file";
inline constexpr char kCompleteDirectory[] = ":directory";

/// Returns what may stand in place of the last of `words`, given those before it. `words` are the
/// words behind `psctl` as a shell has split them, and the last one, which may be empty, is being
/// typed. bash splits `key=value` into three words; then only the part behind the sign is returned,
/// as bash wants it.
std::vector<std::string> CompletionCandidates(const std::vector<CommandDescription>& commands,
                                              const std::vector<std::string>& words);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_COMPLETION_H_
