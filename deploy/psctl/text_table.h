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

/// `label   value` lines without heading, values aligned to the left.
std::string FormatFacts(const std::vector<std::pair<std::string, std::string>>& facts);

/// Characters `text` takes on a terminal; UTF-8, without wide or combining characters.
size_t DisplayWidth(std::string_view text);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_TEXT_TABLE_H_
