#ifndef SLIPSTREAM_COMMON_PROCESS_ENVIRONMENT_H_
#define SLIPSTREAM_COMMON_PROCESS_ENVIRONMENT_H_

#include <map>
#include <string>

namespace slipstream {

/// Returns the variables of `block` by name; `block` is like environ: NAME=value strings, then
/// nullptr. The first value of a name counts, as for getenv.
std::map<std::string, std::string> EnvironmentMap(const char* const* block);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_ENVIRONMENT_H_
