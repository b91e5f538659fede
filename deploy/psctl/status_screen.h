#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_SCREEN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_SCREEN_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace slipstream {

/// What of a text of several lines fits on a screen: lines are cut at `columns` characters, and
/// where there are more than `rows` lines the last one left says how many are missing.
std::string FitText(std::string_view text, size_t rows, size_t columns);

/// Shows one text after another on stdout: on a terminal each in the place of the one before, cut
/// to the window; elsewhere one below the other, with an empty line between.
///
/// Not thread-safe: one owner.
class StatusScreen {
 public:
  /// Looks whether stdout is a terminal.
  StatusScreen();

  void Show(std::string_view text);

  /// No other comes: where the window has cut the text, it is shown in full.
  void Keep(std::string_view text);

  /// A line on stderr that stays; what is shown next begins below it.
  void Note(std::string_view text);

 private:
  void Print(std::string_view text);

  const bool is_terminal_;
  bool has_shown_ = false;
  size_t lines_shown_ = 0;  // Of the text that the next one replaces.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_SCREEN_H_
