#ifndef SLIPSTREAM_DEPLOY_PSCTL_NODE_COMMAND_H_
#define SLIPSTREAM_DEPLOY_PSCTL_NODE_COMMAND_H_

#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Runs this node's part of a run: finds the node's place, starts its servers and workers, and sees
/// to them until the run is over or somebody asks to stop. Returns psctl's exit code, which is
/// kPreempted if what there was is saved and the run goes on once all nodes are started again.
int NodeCommand(const NodeArguments& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_NODE_COMMAND_H_
