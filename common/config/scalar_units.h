#ifndef SLIPSTREAM_COMMON_CONFIG_SCALAR_UNITS_H_
#define SLIPSTREAM_COMMON_CONFIG_SCALAR_UNITS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace slipstream {

/// Constants that the reading and the printing of scalars share.

/// The largest length of a name.
inline constexpr size_t kNameBytesMax = 64;

/// A unit, named by the text after a number. The factor converts to milliseconds or to bytes.
struct Unit {
  std::string_view name;
  uint64_t factor;
};

// The largest unit comes first: a value is printed in the largest unit that divides it.
inline constexpr std::array<Unit, 4> kDurationUnits = {
    {{"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};
inline constexpr std::array<Unit, 3> kBytesUnits = {
    {{"GiB", uint64_t{1} << 30}, {"MiB", uint64_t{1} << 20}, {"KiB", uint64_t{1} << 10}}};

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_SCALAR_UNITS_H_
