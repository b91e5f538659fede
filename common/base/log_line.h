#ifndef SLIPSTREAM_COMMON_BASE_LOG_LINE_H_
#define SLIPSTREAM_COMMON_BASE_LOG_LINE_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace slipstream {

/// A fact that belongs to a line of the log, for example {"worker", 3}.
struct LogField {
  using Value = std::variant<bool, int64_t, uint64_t, double, std::string>;

  template <std::same_as<bool> Bool>
  LogField(std::string_view field, Bool is_true) : name(field), value(is_true) {}
  template <std::signed_integral Number>
  LogField(std::string_view field, Number number) : name(field), value(int64_t{number}) {}
  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) LogField(std::string_view field, Number number)
      : name(field), value(uint64_t{number}) {}
  LogField(std::string_view field, double number) : name(field), value(number) {}
  LogField(std::string_view field, const char* text) : name(field), value(std::string(text)) {}
  template <typename Text>  // A string, or a view of one: the library's or Abseil's.
  requires requires(const Text& text) { std::string(text.data(), text.size()); }
  LogField(std::string_view field, const Text& text)
      : name(field), value(std::string(text.data(), text.size())) {}

  /// Lower case, with the unit at its end where there is one: "seconds", "memory_bytes".
  std::string name;
  Value value;
};

/// A line of the log: what happened, in words that never change, and the facts, which do. Programs
/// that read the log tell lines apart by the words, and facts by their names:
///
///   LogLine("worker registered", {{"worker", 3}, {"host", "gpu-7"}})
///
/// A plain value. Cores return lines; common/log/log.h writes them.
struct LogLine {
  explicit LogLine(std::string words, std::vector<LogField> facts = {})
      : text(std::move(words)), fields(std::move(facts)) {}

  std::string text;
  std::vector<LogField> fields;
};

/// Returns the line for people: `worker registered worker=3 host=gpu-7`. Numbers with a fraction
/// have four digits. Text with blanks, quotation marks or an equals sign, and empty text, is put in
/// quotation marks, and such marks within it become apostrophes, so no text passes for a field.
std::string TextOf(const LogLine& line);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_LOG_LINE_H_
