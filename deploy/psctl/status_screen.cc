#include "deploy/psctl/status_screen.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/process/output_text.h"

namespace slipstream {
namespace {

struct Window {
  size_t rows = 24;
  size_t columns = 100;
};

Window WindowOfStdout() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

/// The first `columns` characters; UTF-8's continuation bytes belong to the one before.
std::string_view Cut(std::string_view line, size_t columns) {
  size_t end = 0;
  for (size_t width = 0; end < line.size(); ++end) {
    const bool begins_a_character = (line[end] & 0xC0) != 0x80;
    if (begins_a_character && width++ == columns) break;
  }
  return line.substr(0, end);
}

}  // namespace

std::string FitText(std::string_view text, size_t rows, size_t columns) {
  const std::vector<std::string_view> lines = Lines(text);
  const bool fits = lines.size() <= rows;
  const size_t whole = fits ? lines.size() : std::max<size_t>(rows, 1) - 1;
  std::string fitted;
  for (size_t i = 0; i < whole; ++i) fitted += fmt::format("{}\n", Cut(lines[i], columns));
  if (!fits) {
    const std::string rest = fmt::format("… {} more lines", lines.size() - whole);
    fitted += fmt::format("{}\n", Cut(rest, columns));
  }
  return fitted;
}

StatusScreen::StatusScreen() : is_terminal_(isatty(STDOUT_FILENO) == 1) {}

void StatusScreen::Show(std::string_view text) {
  if (!is_terminal_) return Print(text);
  // A line stays free for the cursor, and a column, as a full line wraps on some terminals.
  const Window window = WindowOfStdout();
  Print(FitText(text, window.rows - 1, window.columns - 1));
}

void StatusScreen::Keep(std::string_view text) {
  if (is_terminal_) Print(text);
}

void StatusScreen::Print(std::string_view text) {
  if (!is_terminal_) {
    fmt::print("{}{}", has_shown_ ? "\n" : "", text);
  } else {
    // Up to where the last text began; every line replaces one, and what is left below goes.
    if (lines_shown_ > 0) fmt::print("\x1b[{}A\r", lines_shown_);
    const std::vector<std::string_view> lines = Lines(text);
    for (const std::string_view line : lines) fmt::print("{}\x1b[K\n", line);
    fmt::print("\x1b[J");
    lines_shown_ = lines.size();
  }
  has_shown_ = true;
  std::fflush(stdout);
}

void StatusScreen::Note(std::string_view text) {
  WriteToStderr(fmt::format("{}\n", text));
  lines_shown_ = 0;
}

}  // namespace slipstream
