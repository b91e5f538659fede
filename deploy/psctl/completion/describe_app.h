#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_DESCRIBE_APP_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_DESCRIBE_APP_H_

#include <CLI/CLI.hpp>
#include <vector>

#include "deploy/psctl/completion/command_description.h"

namespace slipstream {

/// Returns the app and the commands below it that help shows, parents first. The type name of an
/// option, which help shows, too, says what it takes: FILE and RUN.YAML, DIR, KEY=VALUE, or choices
/// with '|' between.
std::vector<CommandDescription> DescribeApp(const CLI::App& app);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPLETION_DESCRIBE_APP_H_
