#include "common/base/printable.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(PrintableTest, LeavesTextAlone) {
  EXPECT_EQ(Printable("node-7: λ ≤ 4096, 漢字, 🙂"), "node-7: λ ≤ 4096, 漢字, 🙂");
  EXPECT_EQ(Printable("\u00A0"), "\u00A0") << "the first character behind C1";
  EXPECT_EQ(Printable(""), "");
}

TEST(PrintableTest, KeepsItInOneLine) { EXPECT_EQ(Printable("a\nb\tc\r\n"), "a b c  "); }

TEST(PrintableTest, ReplacesWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("\x1b[2J"), "\uFFFD[2J");
  EXPECT_EQ(Printable("\x7F\b"), "\uFFFD\uFFFD");
  EXPECT_EQ(Printable("\u009B2J"), "\uFFFD2J") << "CSI as UTF-8 writes it";
  EXPECT_EQ(Printable("\x9B"
                      "2J"),
            "\uFFFD2J")
      << "CSI as a byte";
}

TEST(PrintableTest, KeepsTheEndsOfLinesWhereThereAreSeveral) {
  EXPECT_EQ(PrintableLines("a\x1b[2J\n\nb\r\n"), "a\uFFFD[2J\n\nb \n");
  EXPECT_EQ(PrintableLines("one"), "one");
  EXPECT_EQ(PrintableLines(""), "");
}

}  // namespace
}  // namespace slipstream
