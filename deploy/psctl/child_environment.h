#ifndef SLIPSTREAM_DEPLOY_PSCTL_CHILD_ENVIRONMENT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CHILD_ENVIRONMENT_H_

#include <string>
#include <vector>

namespace slipstream {

/// Returns the variables of `block` (like environ: NAME=value strings, then nullptr) that servers
/// and workers inherit: all but PS_… variables. The resolved run.yaml has those already, overridden
/// by flags. A server that saw them again would let them override the flags.
std::vector<std::string> ChildEnvironment(const char* const* block);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CHILD_ENVIRONMENT_H_
