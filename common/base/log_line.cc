#include "common/base/log_line.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipstream {

std::string TextOf(const LogLine& line) {
  std::string text = line.text;
  for (const LogField& field : line.fields) {
    text += fmt::format(" {}=", field.name);
    if (const auto* words = std::get_if<std::string>(&field.value)) {
      const bool is_plain =
          !words->empty() && std::ranges::all_of(*words, [](unsigned char character) {
            return character > ' ' && character != '"' && character != '=';
          });
      std::string quoted = *words;
      std::ranges::replace(quoted, '"', '\'');
      text += is_plain ? quoted : fmt::format("\"{}\"", quoted);
    } else if (const auto* number = std::get_if<double>(&field.value)) {
      text += fmt::format("{:.4g}", *number);
    } else if (const auto* is_true = std::get_if<bool>(&field.value)) {
      text += *is_true ? "true" : "false";
    } else if (const auto* count = std::get_if<uint64_t>(&field.value)) {
      text += std::to_string(*count);
    } else {
      text += std::to_string(std::get<int64_t>(field.value));
    }
  }
  return text;
}

}  // namespace slipstream
