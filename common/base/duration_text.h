#ifndef SLIPSTREAM_COMMON_BASE_DURATION_TEXT_H_
#define SLIPSTREAM_COMMON_BASE_DURATION_TEXT_H_

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace slipstream {

/// Returns a figure for people with three digits, or with all digits of its whole part if that has
/// more: "0.422", "5.00", "59.0", "1234".
inline std::string ThreeDigits(double value) {
  const double size = value < 0 ? -value : value;
  if (size == 0) return "0";
  const int decimals = size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

/// Returns a duration for people, with its unit and three digits: "810 µs", "17.3 ms", "59.0 s",
/// and from a minute on "1m52s", "2h05m", "3d04h". A negative duration is "0 s".
inline std::string DurationText(absl::Duration duration) {
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(duration));
  if (seconds < 0.5e-6) return "0 s";
  if (seconds < 0.9995e-3) return ThreeDigits(1e6 * seconds) + " µs";
  if (seconds < 0.9995) return ThreeDigits(1e3 * seconds) + " ms";
  if (seconds < 59.95) return ThreeDigits(seconds) + " s";
  if (duration == absl::InfiniteDuration()) return "for ever";

  const auto two = [](int64_t whole, int64_t large, std::string_view large_unit, int64_t small,
                      std::string_view small_unit) {
    const int64_t units = (whole + small / 2) / small;
    const int64_t ratio = large / small;
    return fmt::format("{}{}{:02}{}", units / ratio, std::string(large_unit), units % ratio,
                       std::string(small_unit));
  };
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return two(whole, 60, "m", 1, "s");
  if (whole < 86400 - 30) return two(whole, 3600, "h", 60, "m");
  return two(whole, 86400, "d", 3600, "h");
}

/// The same for seconds.
inline std::string DurationText(double seconds) { return DurationText(absl::Seconds(seconds)); }

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_DURATION_TEXT_H_
