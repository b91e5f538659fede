#include "deploy/psctl/status/screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/printable.h"
#include "common/process/output_text.h"

namespace slipstream {
namespace {

/// The assumed size of a terminal that does not tell its own.
constexpr ScreenSize kUsualSize = {.rows = 24, .columns = 80};

ScreenSize WindowOfStdout() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2 || size.ws_row < 2) {
    return kUsualSize;
  }
  return {size.ws_row, size.ws_col};
}

/// Returns whether NO_COLOR is set and not empty (https://no-color.org), or the terminal is dumb.
bool WantsNoColours() {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return (no_color != nullptr && *no_color != '\0') ||
         (terminal != nullptr && std::string_view(terminal) == "dumb");
}

std::string_view Colour(LineStyle style) {
  switch (style) {
    case LineStyle::kPlain:
      return "";
    case LineStyle::kHeading:
      return "\x1b[1m";  // Bold.
    case LineStyle::kWarning:
      return "\x1b[33m";  // Yellow.
    case LineStyle::kAlarm:
      return "\x1b[1;31m";  // Bold and red.
  }
  return "";
}

}  // namespace

StatusScreen::StatusScreen()
    : is_terminal_(isatty(STDOUT_FILENO) == 1), has_colours_(is_terminal_ && !WantsNoColours()) {}

ScreenSize StatusScreen::size() const {
  if (!is_terminal_) return {};
  // One line stays free for the cursor, and one column, because a full line wraps on some
  // terminals.
  const ScreenSize window = WindowOfStdout();
  return {window.rows - 1, window.columns - 1};
}

void StatusScreen::Show(const std::vector<ScreenLine>& page) { Print(page); }

void StatusScreen::Keep(const std::vector<ScreenLine>& page) {
  if (is_terminal_) Print(page);
}

void StatusScreen::Print(const std::vector<ScreenLine>& page) {
  std::string text;
  if (!is_terminal_) {
    if (has_shown_) text += "\n";
    for (const ScreenLine& line : page) text += Printable(line.text) + "\n";
  } else {
    // Moves up to the first line of the last page. Every line replaces one, and the rest is erased.
    if (lines_shown_ > 0) text += fmt::format("\x1b[{}A\r", lines_shown_);
    for (const ScreenLine& line : page) {
      const std::string colour(has_colours_ ? Colour(line.style) : "");
      text += colour + Printable(line.text) + (colour.empty() ? "" : "\x1b[0m") + "\x1b[K\n";
    }
    text += "\x1b[J";
    lines_shown_ = page.size();
  }
  has_shown_ = true;
  fmt::print("{}", text);
  std::fflush(stdout);
}

void StatusScreen::Note(std::string_view text) {
  WriteToStderr(PrintableLines(text) + "\n");
  lines_shown_ = 0;
}

}  // namespace slipstream
