#ifndef SLIPSTREAM_COMMON_PROCESS_VERSION_H_
#define SLIPSTREAM_COMMON_PROCESS_VERSION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace slipstream {

/// The release.
inline constexpr std::string_view kVersion = "0.1.0";

/// The format of what is kept on disks for a later start: checkpoints, write-ahead logs,
/// coordinator.state and the states of workers. It goes up by one in a release that adds anything
/// to one of them (common/base/archive.h). A program reads its own format and those before, from
/// the oldest one on.
inline constexpr uint64_t kDurableFormat = 5;
inline constexpr uint64_t kOldestDurableFormat = 4;

/// The protocol between programs (proto/README.md). It goes up by one in a release with a change
/// that a peer without it would misunderstand; a new field that such a peer may ignore is no such
/// change. A server takes peers from the oldest protocol to its own: workers, readers, psctl and
/// other servers of this release work with a server of the next one. The oldest goes up when older
/// peers are refused. A key that a release adds to run.yaml is no such field: a worker without it
/// refuses the settings by the key's name when it joins.
inline constexpr uint32_t kProtocol = 1;
inline constexpr uint32_t kOldestProtocol = 1;

/// Returns the line that `program --version` prints, such as
/// "ps_server 0.1.0 (protocol 1, durable format 4)".
std::string VersionLine(std::string_view program);

/// Returns FAILED_PRECONDITION if a server of this release does not take a `peer`, such as "the
/// worker", that speaks `protocol`. The text names the numbers of both, and says what to do. 0: the
/// peer has not said what it speaks, and is taken.
absl::Status CheckProtocol(uint32_t protocol, std::string_view peer);

/// Returns why this program cannot read what `program` has written in `format`, and what can; empty
/// if it can.
std::string WhyUnreadable(uint64_t format, std::string_view program);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_VERSION_H_
