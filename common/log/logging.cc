#include "common/log/logging.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <utility>

#include "common/log/log_formatters.h"

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
  // spdlog itself and every thread that logs own the logger.
  auto logger = std::make_shared<spdlog::logger>(
      name, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  if (format == LogSpec::Format::kJson) {
    logger->set_formatter(std::make_unique<JsonLogFormatter>(source));
  } else {
    logger->set_formatter(std::make_unique<TextLogFormatter>());
  }
  logger->set_level(ToSpdlog(level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace slipstream
