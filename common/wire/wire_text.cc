#include "common/wire/wire_text.h"

#include <utf8cpp/utf8.h>

#include "common/base/utf8.h"

namespace slipstream {

std::string WireText(std::string_view text, size_t bytes_max) {
  return std::string(CutUtf8(utf8::replace_invalid(text), bytes_max));
}

}  // namespace slipstream
