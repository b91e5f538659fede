#ifndef SLIPSTREAM_COMMON_PROCESS_TEXT_LOG_FORMATTER_H_
#define SLIPSTREAM_COMMON_PROCESS_TEXT_LOG_FORMATTER_H_

#include <spdlog/pattern_formatter.h>

#include <memory>
#include <string>

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

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_TEXT_LOG_FORMATTER_H_
