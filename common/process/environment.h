#ifndef SLIPSTREAM_COMMON_PROCESS_ENVIRONMENT_H_
#define SLIPSTREAM_COMMON_PROCESS_ENVIRONMENT_H_

#include <map>
#include <string>

namespace slipstream {

/// `block` (like environ: NAME=value strings, then nullptr) by name; the first of a name counts, as
/// for getenv.
std::map<std::string, std::string> EnvironmentMap(const char* const* block);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_ENVIRONMENT_H_
