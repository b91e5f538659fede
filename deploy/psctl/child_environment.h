#ifndef SLIPSTREAM_DEPLOY_PSCTL_CHILD_ENVIRONMENT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CHILD_ENVIRONMENT_H_

#include <map>
#include <string>
#include <vector>

namespace slipstream {

/// `block` (like environ: NAME=value strings, then nullptr) by name; the first of a name counts, as
/// for getenv.
std::map<std::string, std::string> EnvironmentMap(const char* const* block);

/// What of `block` servers and workers inherit: all but PS_… variables. Those are in the resolved
/// run.yaml already, where flags have overridden them; a server that saw them again would let them
/// override the flags.
std::vector<std::string> ChildEnvironment(const char* const* block);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CHILD_ENVIRONMENT_H_
