#include "common/log/logging.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "common/log/log_formatters.h"
#include "common/log/log_sink.h"

namespace slipstream {
namespace {

spdlog::level::level_enum ToSpdlog(LogSpec::Level level) {
  switch (level) {
    case LogSpec::Level::kDebug:
      return spdlog::level::debug;
    case LogSpec::Level::kInfo:
      return spdlog::level::info;
    case LogSpec::Level::kWarning:
      return spdlog::level::warn;
    case LogSpec::Level::kError:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void StartLogging(const LogSource& source, LogSpec::Level level, LogSpec::Format format) {
  std::string name = source.role;
  if (source.number.has_value()) name += "-" + std::to_string(*source.number);
  // Threads may wait in the sink while another logger takes the place of theirs.
  static const auto kSink = std::make_shared<LogSink>(STDERR_FILENO);
  // spdlog itself and every thread that logs own the logger.
  auto logger = std::make_shared<spdlog::logger>(name, kSink);
  if (format == LogSpec::Format::kJson) {
    logger->set_formatter(std::make_unique<JsonLogFormatter>(source));
  } else {
    logger->set_formatter(std::make_unique<TextLogFormatter>());
  }
  logger->set_level(ToSpdlog(level));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace slipstream
