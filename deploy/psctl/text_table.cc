#include "deploy/psctl/text_table.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "common/base/check.h"
#include "common/base/printable.h"

namespace slipstream {
namespace {

constexpr std::string_view kGap = "  ";

struct Column {
  size_t width = 0;
  bool numbers = true;
};

/// Returns whether a cell is like "12", "-0.5", "87.5%" or "3/4", and no address.
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

size_t TotalWidth(const std::vector<Column>& columns) {
  size_t width = 0;
  for (const Column& column : columns) width += column.width + kGap.size();
  return width - kGap.size();
}

void MakePrintable(std::vector<TableRow>& rows) {
  for (TableRow& row : rows) std::ranges::transform(row, row.begin(), Printable);
}

}  // namespace

size_t DisplayWidth(std::string_view text) {
  // Every byte begins a character, except continuation bytes of UTF-8.
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string FormatTable(const TableRow& heading, const std::vector<TableRow>& rows) {
  std::vector<TableRow> cells = rows;
  MakePrintable(cells);
  const std::vector<Column> columns = Measure(heading, cells);
  std::string text = FormatRow(heading, columns);
  for (const TableRow& row : cells) text += FormatRow(row, columns);
  return text;
}

std::vector<std::string> FormatTableWithin(std::vector<TableColumn> columns,
                                           std::vector<TableRow> rows, size_t width_max) {
  PS_CHECK(!columns.empty());
  MakePrintable(rows);
  TableRow heading;
  for (const TableColumn& column : columns) heading.push_back(column.title);
  std::vector<Column> measured = Measure(heading, rows);
  while (TotalWidth(measured) > width_max && columns.size() > 1) {
    const auto dropped = std::ranges::min_element(columns, {}, &TableColumn::rank);
    const auto index = dropped - columns.begin();
    columns.erase(dropped);
    measured.erase(measured.begin() + index);
    heading.erase(heading.begin() + index);
    for (TableRow& row : rows) row.erase(row.begin() + index);
  }

  rows.insert(rows.begin(), std::move(heading));
  std::vector<std::string> lines;
  for (const TableRow& row : rows) {
    std::string line = FormatRow(row, measured);
    line.pop_back();  // Removes the end of the line.
    lines.push_back(Ellipsize(line, width_max));
  }
  return lines;
}

std::string Ellipsize(std::string_view line, size_t width_max) {
  if (DisplayWidth(line) <= width_max) return std::string(line);
  if (width_max == 0) return "";
  size_t end = 0;
  for (size_t width = 0; end < line.size(); ++end) {
    const bool begins_a_character = (line[end] & 0xC0) != 0x80;
    if (begins_a_character && width++ == width_max - 1) break;
  }
  return std::string(line.substr(0, end)) + "…";
}

std::vector<std::string> SplitLines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

std::string FormatFacts(const std::vector<std::pair<std::string, std::string>>& facts) {
  size_t width = 0;
  for (const auto& [label, value] : facts) width = std::max(width, DisplayWidth(label));
  std::string text;
  for (const auto& [label, value] : facts) {
    text += label;
    text += std::string(width - DisplayWidth(label) + kFactGap, ' ');
    text += Printable(value);
    text += '\n';
  }
  return text;
}

}  // namespace slipstream
