#ifndef SLIPSTREAM_COMMON_PROCESS_VERSION_H_
#define SLIPSTREAM_COMMON_PROCESS_VERSION_H_

#include <string_view>

namespace slipstream {

/// The version that `--version` of every program prints.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_VERSION_H_
