#ifndef SLIPSTREAM_DEPLOY_PSCTL_CHILD_ENVIRONMENT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CHILD_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace slipstream {

/// What of `block` (like environ: NAME=value strings, then nullptr) servers and workers inherit:
/// all but PS_… variables. Those are in the resolved run.yaml already, where flags have overridden
/// them; a server that saw them again would let them override the flags.
std::vector<std::string> ChildEnvironment(const char* const* block);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CHILD_ENVIRONMENT_H_
