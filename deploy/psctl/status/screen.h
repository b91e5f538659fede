#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_SCREEN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_SCREEN_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "deploy/psctl/text_table.h"

namespace slipstream {

/// Shows one page after another on stdout. On a terminal each page replaces the one before, in
/// colours unless NO_COLOR is set or TERM is "dumb". Elsewhere pages follow each other, with an
/// empty line between them.
///
/// Not thread-safe: one owner.
class StatusScreen {
 public:
  /// Finds out whether stdout is a terminal.
  StatusScreen();

  /// Returns the size that a page may have now: that of the terminal's window, and no bounds
  /// elsewhere.
  ScreenSize size() const;

  /// REQUIRES: on a terminal, the page fits into `size`.
  void Show(const std::vector<ScreenLine>& page);

  /// Shows the last page in full, which may be longer than the window. Does nothing if stdout is no
  /// terminal, because the page has been shown in full already.
  void Keep(const std::vector<ScreenLine>& page);

  /// Writes a line to stderr that stays; the next page begins below it.
  void Note(std::string_view text);

 private:
  void Print(const std::vector<ScreenLine>& page);

  // Constant after construction.
  const bool is_terminal_;
  const bool has_colours_;

  bool has_shown_ = false;
  size_t lines_shown_ = 0;  // Lines of the page that the next one replaces.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_SCREEN_H_
