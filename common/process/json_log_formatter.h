#ifndef SLIPSTREAM_COMMON_PROCESS_JSON_LOG_FORMATTER_H_
#define SLIPSTREAM_COMMON_PROCESS_JSON_LOG_FORMATTER_H_

#include <spdlog/formatter.h>

#include <memory>
#include <string>

#include "common/process/logging.h"

namespace slipstream {

/// Writes each message as one JSON object in one line; logging.h shows one.
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

#endif  // SLIPSTREAM_COMMON_PROCESS_JSON_LOG_FORMATTER_H_
