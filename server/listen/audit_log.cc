#include "server/listen/audit_log.h"

#include <spdlog/spdlog.h>

#include <cstdint>
#include <optional>

#include "common/base/log_line.h"
#include "common/base/printable.h"
#include "common/base/utf8.h"
#include "common/log/log.h"

namespace slipstream {
namespace {

constexpr size_t kFieldBytesMax = 256;

std::string Cut(const std::string& text) { return Printable(CutUtf8(text, kFieldBytesMax)); }

}  // namespace

void AuditLog::Note(const Event& event) {
  const bool is_refusal = event.event == "refused";
  if (is_refusal) ++refusals_;
  std::optional<uint64_t> left_out;
  {
    MutexLock lock(mutex_);
    left_out = (is_refusal ? of_refusals_ : of_others_).Take(now_());
  }
  if (!left_out.has_value()) return;
  if (*left_out > 0) LogWarning("audit", {{"event", "left_out"}, {"lines", *left_out}});
  const auto level = is_refusal ? spdlog::level::warn : spdlog::level::info;
  Log(level, LogLine("audit", {{"event", event.event},
                               {"identity", Cut(event.identity)},
                               {"peer", event.peer},
                               {"method", Cut(event.method)},
                               {"reason", Cut(event.reason)}}));
}

}  // namespace slipstream
