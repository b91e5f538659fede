#include "common/process/json_log_formatter.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "common/json/json_text.h"

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

void JsonLogFormatter::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) {
  const spdlog::string_view_t level = spdlog::level::to_string_view(message.level);
  nlohmann::ordered_json object = {{"time", TimeText(message.time)},
                                   {"level", std::string(level.data(), level.size())},
                                   {"role", source_.role}};
  if (source_.number.has_value()) {
    object[source_.role == "server" ? "shard" : source_.role] = *source_.number;
  }
  object["message"] = std::string(message.payload.data(), message.payload.size());
  const std::string text = JsonLine(object);
  line.append(text.data(), text.data() + text.size());
}

std::unique_ptr<spdlog::formatter> JsonLogFormatter::clone() const {
  return std::make_unique<JsonLogFormatter>(source_);
}

}  // namespace slipstream
