#include "server/listen/audit_log.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "common/base/printable.h"
#include "common/base/utf8.h"

namespace slipstream {

namespace {

constexpr size_t kFieldBytesMax = 256;

std::string Field(const std::string& text) {
  std::string field = Printable(CutUtf8(text, kFieldBytesMax));
  std::ranges::replace(field, '"', '\'');
  return field;
}

}  // namespace

void AuditLog::Note(const Event& event) {
  const bool is_refusal = event.event == "refused";
  uint64_t left_out = 0;
  {
    MutexLock lock(mutex_);
    Allowance& allowance = is_refusal ? of_refusals_ : of_others_;
    const absl::Time now = now_();
    const double seconds = absl::ToDoubleSeconds(now - std::exchange(allowance.counted, now));
    allowance.left = std::min(kLinesAtOnce, allowance.left + kLinesPerSecond * seconds);
    if (allowance.left < 1) {
      ++allowance.left_out;
      return;
    }
    allowance.left -= 1;
    left_out = std::exchange(allowance.left_out, 0);
  }
  if (left_out > 0) spdlog::warn("audit event=left_out lines={}", left_out);
  const auto level = is_refusal ? spdlog::level::warn : spdlog::level::info;
  spdlog::log(level, "audit event={} identity={} peer={} method={} reason=\"{}\"", event.event,
              Field(event.identity), event.peer, Field(event.method), Field(event.reason));
}

}  // namespace slipstream
