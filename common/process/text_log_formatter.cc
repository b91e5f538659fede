#include "common/process/text_log_formatter.h"

#include <string_view>

#include "common/base/printable.h"

namespace slipstream {

TextLogFormatter::TextLogFormatter()
    : pattern_("%Y-%m-%dT%H:%M:%S.%fZ %n %^%-7l%$ %v", spdlog::pattern_time_type::utc) {}

void TextLogFormatter::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) {
  const std::string text =
      Printable(std::string_view(message.payload.data(), message.payload.size()));
  spdlog::details::log_msg printable = message;
  printable.payload = text;
  pattern_.format(printable, line);
  // The sink reads here which part of the line to colour.
  message.color_range_start = printable.color_range_start;
  message.color_range_end = printable.color_range_end;
}

std::unique_ptr<spdlog::formatter> TextLogFormatter::clone() const {
  return std::make_unique<TextLogFormatter>();
}

}  // namespace slipstream
