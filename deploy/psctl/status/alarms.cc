#include "deploy/psctl/status/alarms.h"

#include <utility>

namespace slipstream {
namespace {

LineStyle StyleOf(Alarm::Level level) {
  switch (level) {
    case Alarm::Level::kNote:
      return LineStyle::kPlain;
    case Alarm::Level::kWarning:
      return LineStyle::kWarning;
    case Alarm::Level::kAlarm:
      return LineStyle::kAlarm;
  }
  return LineStyle::kPlain;
}

}  // namespace

std::vector<ScreenLine> StatusAlarms(const v1::RunStatus& status) {
  std::vector<ScreenLine> lines;
  for (Alarm& alarm : AlarmsOf(status)) {
    lines.push_back({std::move(alarm.text), StyleOf(alarm.level)});
  }
  return lines;
}

}  // namespace slipstream
