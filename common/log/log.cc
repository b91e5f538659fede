#include "common/log/log.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace slipstream {
namespace {

// spdlog formats a message in the thread that logs it, and knows a message as one text. The fields
// go past it here, and not encoded in that text, where a peer's words could look like them.
thread_local const LogLine* line_being_logged = nullptr;

}  // namespace

void Log(spdlog::level::level_enum level, const LogLine& line) {
  spdlog::logger* const logger = spdlog::default_logger_raw();
  if (!logger->should_log(level)) return;
  const BeingLogged scope(line);
  logger->log(level, spdlog::string_view_t(TextOf(line)));
}

void LogDebug(std::string text, std::vector<LogField> fields) {
  Log(spdlog::level::debug, LogLine(std::move(text), std::move(fields)));
}

void LogInfo(std::string text, std::vector<LogField> fields) {
  Log(spdlog::level::info, LogLine(std::move(text), std::move(fields)));
}

void LogWarning(std::string text, std::vector<LogField> fields) {
  Log(spdlog::level::warn, LogLine(std::move(text), std::move(fields)));
}

void LogError(std::string text, std::vector<LogField> fields) {
  Log(spdlog::level::err, LogLine(std::move(text), std::move(fields)));
}

const LogLine* LineBeingLogged() { return line_being_logged; }

BeingLogged::BeingLogged(const LogLine& line) : before_(std::exchange(line_being_logged, &line)) {}
BeingLogged::~BeingLogged() { line_being_logged = before_; }

}  // namespace slipstream
