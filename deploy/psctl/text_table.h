#ifndef SLIPSTREAM_DEPLOY_PSCTL_TEXT_TABLE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_TEXT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

using TableRow = std::vector<std::string>;

/// Returns `heading` and `rows` in columns two blanks apart, one line each. A column whose cells
/// all look like numbers is aligned to the right. Rows may be shorter than the heading, but not
/// longer. Cells and values of facts are made Printable, because they may come from a peer.
std::string FormatTable(const TableRow& heading, const std::vector<TableRow>& rows);

/// A column of a table that has to fit. Columns of a higher `rank` stay longer where it is narrow.
struct TableColumn {
  std::string title;
  int rank = 0;
};

/// Returns the table as lines of at most `width_max` characters. Columns of the lowest rank are
/// left out until the others fit; longer lines end with an ellipsis. The first line is the heading.
/// REQUIRES: every row has a cell for each column.
std::vector<std::string> FormatTableWithin(std::vector<TableColumn> columns,
                                           std::vector<TableRow> rows, size_t width_max);

/// Returns the first `width_max` characters of a line. If it has more, the last one is an ellipsis.
std::string Ellipsize(std::string_view line, size_t width_max);

/// The number of characters between the longest label of facts and its value.
inline constexpr size_t kFactGap = 2;

/// Returns `label   value` lines without a heading, with values aligned to the left.
std::string FormatFacts(const std::vector<std::pair<std::string, std::string>>& facts);

/// Returns the lines of a text, without their ends.
std::vector<std::string> SplitLines(std::string_view text);

/// Returns the number of characters that `text`, UTF-8 without wide or combining characters, takes
/// on a terminal.
size_t DisplayWidth(std::string_view text);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_TEXT_TABLE_H_
