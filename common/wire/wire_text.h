#ifndef SLIPSTREAM_COMMON_WIRE_WIRE_TEXT_H_
#define SLIPSTREAM_COMMON_WIRE_WIRE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace slipstream {

/// Returns `text` for a string field of a message: UTF-8, with U+FFFD for other bytes, and cut at
/// the end of a character to at most `bytes_max` bytes. Names of files and text found in them may
/// be anything, and a receiver refuses the whole message if such a field is not UTF-8.
std::string WireText(std::string_view text, size_t bytes_max);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_WIRE_TEXT_H_
