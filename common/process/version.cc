#include "common/process/version.h"

#include <fmt/format.h>

namespace slipstream {

std::string WhyUnreadable(uint64_t format, std::string_view program) {
  const bool is_newer = format > kDurableFormat;
  if (!is_newer && format >= kOldestDurableFormat) return "";
  return fmt::format(
      "slipstream {} has written it, in format {}, and this is {}, which reads {}; {}", program,
      format, kVersion,
      kOldestDurableFormat == kDurableFormat
          ? fmt::format("format {}", kDurableFormat)
          : fmt::format("formats {} to {}", kOldestDurableFormat, kDurableFormat),
      is_newer ? "use that release, or a later one"
               : "go on with that release, or with the next one after it");
}

}  // namespace slipstream
