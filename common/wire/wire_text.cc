#include "common/wire/wire_text.h"

#include <nlohmann/json.hpp>

#include "common/base/utf8.h"

namespace slipstream {

std::string WireText(std::string_view text, size_t bytes_max) {
  using Json = nlohmann::json;
  const std::string quoted =
      Json(std::string(text)).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
  const std::string valid = Json::parse(quoted).get<std::string>();
  return std::string(CutUtf8(valid, bytes_max));
}

}  // namespace slipstream
