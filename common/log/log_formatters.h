#ifndef SLIPSTREAM_COMMON_LOG_LOG_FORMATTERS_H_
#define SLIPSTREAM_COMMON_LOG_LOG_FORMATTERS_H_

#include <spdlog/formatter.h>
#include <spdlog/pattern_formatter.h>

#include <memory>

#include "common/log/logging.h"

namespace slipstream {

/// Writes each message as one line of text; logging.h shows one. Text from peers and files may be
/// part of a message: it cannot begin a line of its own, nor reach the terminal as a command.
///
/// Not thread-safe: one owner, the sink that calls it.
class TextLogFormatter final : public spdlog::formatter {
 public:
  TextLogFormatter();

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override;
  std::unique_ptr<spdlog::formatter> clone() const override;

 private:
  spdlog::pattern_formatter pattern_;
};

/// Writes each message as one JSON object in one line; logging.h shows one. It is to be called by
/// the thread that logs, as spdlog's synchronous loggers do.
///
/// Not thread-safe: one owner, the sink that calls it.
class JsonLogFormatter final : public spdlog::formatter {
 public:
  explicit JsonLogFormatter(LogSource source) : source_(std::move(source)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override;
  std::unique_ptr<spdlog::formatter> clone() const override;

 private:
  const LogSource source_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOG_LOG_FORMATTERS_H_
