#ifndef SLIPSTREAM_COMMON_CONFIG_YAML_NUMBER_H_
#define SLIPSTREAM_COMMON_CONFIG_YAML_NUMBER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace slipstream {

/// These functions read text without quotes as YAML 1.2's core schema does (section 10.3.2).

/// The value of a number.
struct YamlNumber {
  double value = 0;  // Infinite for `.inf` and for a number beyond all doubles; NaN for `.nan`.

  /// Set for a number without a point and an exponent.
  bool is_whole = false;

  /// The exact value of a whole number in [0, 2^64).
  std::optional<uint64_t> count;
};

/// Reads `.05`, `1.`, `3.e-4`, `+0.1`, `0x1F`, `0o17`, `.inf`, `.nan` and the like; nothing if the
/// text is no number.
std::optional<YamlNumber> ReadYamlNumber(std::string_view text);

/// Returns the length of the decimal number at the start of `text`, with sign and exponent; 0 if
/// there is none.
size_t DecimalLength(std::string_view text);

/// Reads `true`, `True`, `TRUE` and the same of false; nothing if the text is another one.
std::optional<bool> ReadYamlTruth(std::string_view text);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_YAML_NUMBER_H_
