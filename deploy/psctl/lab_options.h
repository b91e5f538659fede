#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_OPTIONS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Adds `lab` with its commands run, status and report, which fill in `arguments`; it must outlive
/// `app`. Returns the command `lab`.
CLI::App* AddLabCommands(CLI::App& app, LabArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_OPTIONS_H_
