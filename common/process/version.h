#ifndef SLIPSTREAM_COMMON_PROCESS_VERSION_H_
#define SLIPSTREAM_COMMON_PROCESS_VERSION_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace slipstream {

/// The release.
inline constexpr std::string_view kVersion = "0.1.0";

/// The format of what is kept on disks for a later start: checkpoints, write-ahead logs,
/// coordinator.state and the states of workers. It goes up by one in a release that adds anything
/// to one of them (common/base/archive.h). A program reads its own format and those before, from
/// the oldest one on.
inline constexpr uint64_t kDurableFormat = 4;
inline constexpr uint64_t kOldestDurableFormat = 4;

/// Returns why this program cannot read what `program` has written in `format`, and what can; empty
/// if it can.
std::string WhyUnreadable(uint64_t format, std::string_view program);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_VERSION_H_
