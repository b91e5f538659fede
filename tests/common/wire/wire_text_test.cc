#include "common/wire/wire_text.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(WireTextTest, LeavesUtf8AsItIs) {
  EXPECT_EQ(WireText("Größe \"12\"\n\t漢字", 100), "Größe \"12\"\n\t漢字");
  EXPECT_EQ(WireText("", 100), "");
}

TEST(WireTextTest, MakesUtf8OfWhatIsNone) {
  EXPECT_EQ(WireText("Gr\xF6\xDF"
                     "e",
                     100),
            "Gr\uFFFD\uFFFD"
            "e");
  EXPECT_EQ(WireText("cut \xE6\xBC", 100), "cut \uFFFD");
}

TEST(WireTextTest, EndsWithAWholeCharacter) {
  EXPECT_EQ(WireText("漢字", 6), "漢字");
  EXPECT_EQ(WireText("漢字", 5), "漢");
  EXPECT_EQ(WireText("漢字", 3), "漢");
  EXPECT_EQ(WireText("漢字", 2), "");
}

}  // namespace
}  // namespace slipstream
