#include "deploy/psctl/text_table.h"

#include <algorithm>
#include <cctype>

#include "common/base/check.h"
#include "common/base/printable.h"

namespace slipstream {
namespace {

constexpr std::string_view kGap = "  ";

struct Column {
  size_t width = 0;
  bool numbers = true;
};

/// "12", "-0.5", "87.5%", "3/4", but no address.
bool LooksLikeANumber(std::string_view cell) {
  if (cell.empty() || cell == "-") return true;
  const size_t first = cell.front() == '-' ? 1 : 0;
  return std::isdigit(static_cast<unsigned char>(cell[first])) && cell.find(':') == cell.npos;
}

std::vector<Column> Measure(const TableRow& heading, const std::vector<TableRow>& rows) {
  std::vector<Column> columns;
  for (const std::string& title : heading) columns.push_back({.width = DisplayWidth(title)});
  for (const TableRow& row : rows) {
    PS_CHECK(row.size() <= heading.size());
    for (size_t i = 0; i < row.size(); ++i) {
      columns[i].width = std::max(columns[i].width, DisplayWidth(row[i]));
      columns[i].numbers = columns[i].numbers && LooksLikeANumber(row[i]);
    }
  }
  return columns;
}

std::string FormatRow(const TableRow& row, const std::vector<Column>& columns) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string padding(columns[i].width - DisplayWidth(row[i]), ' ');
    if (i > 0) line += kGap;
    line += columns[i].numbers ? padding + row[i] : row[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  // Every byte but UTF-8's continuation bytes begins a character.
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string FormatTable(const TableRow& heading, const std::vector<TableRow>& rows) {
  std::vector<TableRow> cells = rows;
  for (TableRow& row : cells) std::ranges::transform(row, row.begin(), Printable);
  const std::vector<Column> columns = Measure(heading, cells);
  std::string text = FormatRow(heading, columns);
  for (const TableRow& row : cells) text += FormatRow(row, columns);
  return text;
}

std::string FormatFacts(const std::vector<std::pair<std::string, std::string>>& facts) {
  size_t width = 0;
  for (const auto& [label, value] : facts) width = std::max(width, DisplayWidth(label));
  std::string text;
  for (const auto& [label, value] : facts) {
    text += label;
    text += std::string(width - DisplayWidth(label), ' ');
    text += kGap;
    text += Printable(value);
    text += '\n';
  }
  return text;
}

}  // namespace slipstream
