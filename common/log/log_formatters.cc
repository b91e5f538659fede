#include "common/log/log_formatters.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/log_line.h"
#include "common/base/printable.h"
#include "common/json/json_text.h"
#include "common/log/log.h"

namespace slipstream {
namespace {

std::string TimeText(spdlog::log_clock::time_point time) {
  const auto since_epoch = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  const auto micros = std::chrono::floor<std::chrono::microseconds>(since_epoch - seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z",
                     fmt::gmtime(spdlog::log_clock::to_time_t(spdlog::log_clock::time_point(
                         std::chrono::duration_cast<spdlog::log_clock::duration>(seconds)))),
                     micros.count());
}

}  // namespace

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

void JsonLogFormatter::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) {
  const spdlog::string_view_t level = spdlog::level::to_string_view(message.level);
  nlohmann::ordered_json object = {{"time", TimeText(message.time)},
                                   {"level", std::string(level.data(), level.size())},
                                   {"role", source_.role}};
  if (source_.number.has_value()) {
    object[source_.role == "server" ? "shard" : source_.role] = *source_.number;
  }
  const LogLine* const logged = LineBeingLogged();
  object["message"] = logged != nullptr
                          ? logged->text
                          : std::string(message.payload.data(), message.payload.size());
  if (logged != nullptr && !logged->fields.empty()) {
    nlohmann::ordered_json& fields = object["fields"];
    for (const LogField& field : logged->fields) {
      std::visit([&](const auto& value) { fields[field.name] = value; }, field.value);
    }
  }
  const std::string text = JsonLine(object);
  line.append(text.data(), text.data() + text.size());
}

std::unique_ptr<spdlog::formatter> JsonLogFormatter::clone() const {
  return std::make_unique<JsonLogFormatter>(source_);
}

}  // namespace slipstream
