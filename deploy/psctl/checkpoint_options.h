#ifndef SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_OPTIONS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Adds `checkpoint` with its commands ls, verify, inspect and export, which fill in `arguments`,
/// and save, which fills in `save`; both must outlive `app`. Returns the command `checkpoint`.
CLI::App* AddCheckpointCommands(CLI::App& app, CheckpointArguments& arguments, SaveArguments& save);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CHECKPOINT_OPTIONS_H_
