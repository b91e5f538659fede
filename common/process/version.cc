#include "common/process/version.h"

#include <fmt/format.h>

namespace slipstream {
namespace {

/// Returns "WORD 3", or "WORDs 2 to 3".
std::string SpanText(std::string_view word, uint64_t oldest, uint64_t newest) {
  return oldest == newest ? fmt::format("{} {}", word, newest)
                          : fmt::format("{}s {} to {}", word, oldest, newest);
}

}  // namespace

std::string VersionLine(std::string_view program) {
  return fmt::format("{} {} (protocol {}, durable format {})", program, kVersion, kProtocol,
                     kDurableFormat);
}

absl::Status CheckProtocol(uint32_t protocol, std::string_view peer) {
  const bool is_newer = protocol > kProtocol;
  if (protocol == 0 || (!is_newer && protocol >= kOldestProtocol)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("this server, of release {}, speaks {}, and {} speaks {}: upgrade {}", kVersion,
                  SpanText("protocol", kOldestProtocol, kProtocol), peer, protocol,
                  is_newer ? "the servers first, that of shard 0 before the others" : peer));
}

std::string WhyUnreadable(uint64_t format, std::string_view program) {
  const bool is_newer = format > kDurableFormat;
  if (!is_newer && format >= kOldestDurableFormat) return "";
  return fmt::format(
      "slipstream {} has written it, in format {}, and this is {}, which reads {}; {}", program,
      format, kVersion, SpanText("format", kOldestDurableFormat, kDurableFormat),
      is_newer ? "use that release, or a later one"
               : "go on with that release, or with the next one after it");
}

}  // namespace slipstream
