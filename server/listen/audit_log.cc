#include "server/listen/audit_log.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "common/base/printable.h"

namespace slipstream {

void AuditLog::Note(const Event& event) {
  uint64_t left_out = 0;
  {
    MutexLock lock(mutex_);
    const absl::Time now = now_();
    const double seconds = absl::ToDoubleSeconds(now - std::exchange(counted_, now));
    lines_left_ = std::min(kLinesAtOnce, lines_left_ + kLinesPerSecond * seconds);
    if (lines_left_ < 1) {
      ++left_out_;
      return;
    }
    lines_left_ -= 1;
    left_out = std::exchange(left_out_, 0);
  }
  if (left_out > 0) spdlog::warn("audit event=left_out lines={}", left_out);
  const auto level = event.event == "refused" ? spdlog::level::warn : spdlog::level::info;
  spdlog::log(level, "audit event={} identity={} peer={} method={} reason=\"{}\"", event.event,
              Printable(event.identity), event.peer, Printable(event.method),
              Printable(event.reason));
}

}  // namespace slipstream
