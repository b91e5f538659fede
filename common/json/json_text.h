#ifndef SLIPSTREAM_COMMON_JSON_JSON_TEXT_H_
#define SLIPSTREAM_COMMON_JSON_JSON_TEXT_H_

#include <string>

namespace slipstream {

/// nlohmann's JSON as text, the one way in which it is written here: what is not UTF-8 becomes
/// U+FFFD. Left to itself, dump() throws where a file name, a peer or a command line brought such
/// text. `Json` is nlohmann::json or nlohmann::ordered_json.

/// Without blanks and without a line break.
template <typename Json>
std::string JsonCompact(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

/// In one line, which it ends.
template <typename Json>
std::string JsonLine(const Json& json) {
  return JsonCompact(json) + "\n";
}

/// Indented by 2; ends with a line break.
template <typename Json>
std::string JsonText(const Json& json) {
  return json.dump(2, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_JSON_JSON_TEXT_H_
