#include "deploy/psctl/text_table.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace slipstream
