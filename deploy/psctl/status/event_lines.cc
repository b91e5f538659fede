#include "deploy/psctl/status/event_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/base/printable.h"
#include "common/json/json_text.h"
#include "common/json/message_json.h"

namespace slipstream {

std::string EventLines::Next(const v1::RunStatus& status) {
  if (status.run() != run_) told_ = 0;  // Another run has the address now.
  run_ = status.run();
  std::string lines;
  for (const v1::RunEvent& event : status.events()) {
    if (event.number() <= told_) continue;
    const uint64_t missed = event.number() - told_ - 1;
    if (missed > 0) lines += MissedLine(missed);
    lines += LineOf(event);
    told_ = event.number();
  }
  return lines;
}

std::string EventLines::LineOf(const v1::RunEvent& event) const {
  if (is_json_) return JsonLine(MessageJson(event));
  const std::string time =
      absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(event.time_ms()), zone_);
  return fmt::format("{}  {:<10}  {}{}\n", time, Printable(event.kind()),
                     event.is_warning() ? "! " : "", Printable(event.text()));
}

std::string EventLines::MissedLine(uint64_t missed) const {
  if (is_json_) return JsonLine(nlohmann::ordered_json{{"missed", missed}});
  return fmt::format("... {} event{} that {} not kept any more\n", missed, missed == 1 ? "" : "s",
                     missed == 1 ? "is" : "are");
}

}  // namespace slipstream
