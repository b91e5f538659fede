#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_SUMMARY_VALUES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_SUMMARY_VALUES_H_

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

/// Returns the JSON object in a text; null if there is none.
inline nlohmann::json ParseObject(std::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? json : nlohmann::json();
}

// The values at a JSON pointer, as far as there are any of that kind.

inline std::optional<double> NumberAt(const nlohmann::json& json, const char* pointer) {
  const nlohmann::json::json_pointer place(pointer);
  if (!json.contains(place) || !json.at(place).is_number()) return std::nullopt;
  return json.at(place).get<double>();
}

/// Returns a whole number from a file; 0 for what is none, or below 0.
inline uint64_t CountAt(const nlohmann::json& json, const char* pointer) {
  const double number = NumberAt(json, pointer).value_or(0);
  if (!(number > 0)) return 0;
  return number < 0x1p64 ? static_cast<uint64_t>(number) : std::numeric_limits<uint64_t>::max();
}

inline std::string TextAt(const nlohmann::json& json, const char* pointer) {
  const nlohmann::json::json_pointer place(pointer);
  return json.contains(place) && json.at(place).is_string() ? json.at(place).get<std::string>()
                                                            : "";
}

inline std::vector<uint64_t> CountsAt(const nlohmann::json& json, const char* pointer) {
  const nlohmann::json::json_pointer place(pointer);
  std::vector<uint64_t> counts;
  if (!json.contains(place) || !json.at(place).is_array()) return counts;
  for (const nlohmann::json& count : json.at(place)) {
    counts.push_back(count.is_number_unsigned() ? count.get<uint64_t>() : 0);
  }
  return counts;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_SUMMARY_VALUES_H_
