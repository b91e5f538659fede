#ifndef SLIPSTREAM_DEPLOY_PSCTL_SCREEN_LINE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_SCREEN_LINE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace slipstream {

/// The style of a line on a terminal with colours.
enum class LineStyle : uint8_t {
  kPlain,
  kHeading,
  kWarning,  // The run goes on, but not as well as it could.
  kAlarm,    // Something is lost, or will soon be.
};

/// A line of text without its end.
struct ScreenLine {
  std::string text;
  LineStyle style = LineStyle::kPlain;

  friend bool operator==(const ScreenLine&, const ScreenLine&) = default;
};

/// The size that lines have to fit into, in characters. The default has no bounds.
struct ScreenSize {
  size_t rows = std::numeric_limits<size_t>::max();
  size_t columns = std::numeric_limits<size_t>::max();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_SCREEN_LINE_H_
