#include "deploy/psctl/text_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace slipstream {
namespace {

TEST(TextTableTest, AlignsNumbersRightAndTextLeft) {
  EXPECT_EQ(
      FormatTable({"worker", "state", "pushes"}, {{"0", "live", "7"}, {"10", "dead", "1200"}}),
      "worker  state  pushes\n"
      "     0  live        7\n"
      "    10  dead     1200\n");
}

TEST(TextTableTest, CountsCharactersNotBytes) {
  EXPECT_EQ(DisplayWidth("⟨σ⟩"), 3u);
  EXPECT_EQ(FormatTable({"σ", "x"}, {{"ab", "c"}}), "σ   x\nab  c\n");
}

TEST(TextTableTest, LeavesNoBlanksAtTheEndOfALine) {
  EXPECT_EQ(FormatTable({"name", "note"}, {{"a", ""}, {"b"}}), "name  note\na\nb\n");
}

TEST(TextTableTest, LetsNobodyWriteToTheTerminal) {
  EXPECT_EQ(FormatTable({"host", "x"}, {{"\x1b[2J\nab", "c"}}), "host     x\n\uFFFD[2J ab  c\n");
  EXPECT_EQ(FormatFacts({{"failure", "a\n\x1b[2J"}}), "failure  a \uFFFD[2J\n");
}

TEST(TextTableTest, LinesUpFacts) {
  EXPECT_EQ(FormatFacts({{"run", "demo"}, {"seconds", "1.5"}}), "run      demo\nseconds  1.5\n");
}

TEST(FormatTableWithinTest, LeavesOutColumnsOfTheLowestRankUntilItFits) {
  const std::vector<TableColumn> columns = {{"worker", 3}, {"host", 1}, {"state", 2}};
  const std::vector<TableRow> rows = {{"0", "node-17", "live"}, {"10", "node-18", "dead"}};
  using Lines = std::vector<std::string>;

  EXPECT_EQ(FormatTableWithin(columns, rows, 22),
            (Lines{"worker  host     state", "     0  node-17  live", "    10  node-18  dead"}));
  EXPECT_EQ(FormatTableWithin(columns, rows, 21),
            (Lines{"worker  state", "     0  live", "    10  dead"}));
  EXPECT_EQ(FormatTableWithin(columns, rows, 12), (Lines{"worker", "     0", "    10"}));
  EXPECT_EQ(FormatTableWithin(columns, rows, 4), (Lines{"wor…", "   …", "   …"}));
}

TEST(EllipsizeTest, CutsByCharactersNotBytesAndShowsIt) {
  EXPECT_EQ(Ellipsize("abcd", 4), "abcd");
  EXPECT_EQ(Ellipsize("abcdef", 4), "abc…");
  EXPECT_EQ(Ellipsize("σμλαβ", 3), "σμ…");
  EXPECT_EQ(Ellipsize("σμλ", 3), "σμλ");
  EXPECT_EQ(Ellipsize("ab", 1), "…");
  EXPECT_EQ(Ellipsize("ab", 0), "");
}

TEST(SplitLinesTest, TakesTheLastLineWithAndWithoutItsEnd) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(SplitLines("one\n\ntwo\n"), (Lines{"one", "", "two"}));
  EXPECT_EQ(SplitLines("one\ntwo"), (Lines{"one", "two"}));
  EXPECT_EQ(SplitLines(""), Lines{});
}

}  // namespace
}  // namespace slipstream
