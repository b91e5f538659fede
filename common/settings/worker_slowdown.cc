#include "common/settings/worker_slowdown.h"

#include <fmt/format.h>

#include <vector>

#include "common/base/check.h"
#include "common/base/duration_text.h"

namespace slipstream {

std::string WorkerSlowdown::ToText() const {
  PS_CHECK(!is_none());
  std::vector<std::string> parts;
  if (slower != 1) parts.push_back(fmt::format("{} times as long", slower));
  if (delay > absl::ZeroDuration()) parts.push_back(DurationText(delay) + " longer");
  return fmt::format("a mini-batch takes {}", fmt::join(parts, " and "));
}

}  // namespace slipstream
