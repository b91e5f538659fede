#ifndef SLIPSTREAM_DEPLOY_PSCTL_TEXT_TABLE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_TEXT_TABLE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slipstream {

using TableRow = std::vector<std::string>;

/// `heading` and `rows` in columns two blanks apart, one line each. A column whose cells all look
/// like numbers is aligned to the right. Rows may be shorter than the heading, not longer. Cells
/// and values of facts are made Printable: they may be what a peer says.
std::string FormatTable(const TableRow& heading, const std::vector<TableRow>& rows);

/// A column of a table that has to fit. Columns of a higher `rank` stay longer where room is short.
struct TableColumn {
  std::string title;
  int rank = 0;
};

/// The same, as lines of at most `width_max` characters: columns are left out, those of the lowest
/// rank first, until the others fit, and then longer lines end with an ellipsis. The first line is
/// the heading. REQUIRES: every row has a cell for each column.
std::vector<std::string> FormatTableWithin(std::vector<TableColumn> columns,
                                           std::vector<TableRow> rows, size_t width_max);

/// The first `width_max` characters of a line; if there are more, the last one left is an ellipsis.
std::string Ellipsize(std::string_view line, size_t width_max);

/// Characters between the longest label of facts and its value.
inline constexpr size_t kFactGap = 2;

/// `label   value` lines without heading, values aligned to the left.
std::string FormatFacts(const std::vector<std::pair<std::string, std::string>>& facts);

/// The lines of a text, without their ends.
std::vector<std::string> SplitLines(std::string_view text);

/// Characters `text` takes on a terminal; UTF-8, without wide or combining characters.
size_t DisplayWidth(std::string_view text);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_TEXT_TABLE_H_
