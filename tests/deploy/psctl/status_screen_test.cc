#include "deploy/psctl/status_screen.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(FitTextTest, LeavesWhatFitsAsItIs) {
  EXPECT_EQ(FitText("one\ntwo\n", 2, 3), "one\ntwo\n");
  EXPECT_EQ(FitText("", 2, 3), "");
  EXPECT_EQ(FitText("\n\n", 2, 3), "\n\n");
}

TEST(FitTextTest, CutsLinesByCharactersNotBytes) {
  EXPECT_EQ(FitText("abcdef\n", 5, 4), "abcd\n");
  EXPECT_EQ(FitText("σμλαβ\n", 5, 3), "σμλ\n");
  EXPECT_EQ(FitText("σμλ\n", 5, 3), "σμλ\n");
}

TEST(FitTextTest, SaysHowManyLinesAreMissing) {
  EXPECT_EQ(FitText("1\n2\n3\n4\n", 3, 80), "1\n2\n… 2 more lines\n");
  EXPECT_EQ(FitText("1\n2\n3\n4\n", 1, 80), "… 4 more lines\n");
  EXPECT_EQ(FitText("1\n2\n", 0, 80), "… 2 more lines\n");
}

}  // namespace
}  // namespace slipstream
