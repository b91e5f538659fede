#include "common/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

TEST(Utf8Test, ATextIsCutBetweenCharacters) {
  EXPECT_EQ(CutUtf8("größer", 10), "größer");
  EXPECT_EQ(CutUtf8("größer", 3), "gr");
  EXPECT_EQ(CutUtf8("größer", 4), "grö");
}

TEST(Utf8Test, CharactersOfEveryLengthAreUtf8) {
  for (const char* text :
       {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "λ ≤ 4096, 漢字, 🙂"}) {
    EXPECT_EQ(FirstNotUtf8(text), std::nullopt) << "text '" << text << "'";
  }
  EXPECT_EQ(FirstNotUtf8(std::string(3, '\0')), std::nullopt);
}

TEST(Utf8Test, TheFirstByteThatBelongsToNoCharacterIsFound) {
  EXPECT_EQ(FirstNotUtf8("caf\xE9"), 3u);
  EXPECT_EQ(FirstNotUtf8("ö\xE9t\xE9"), 2u);
  EXPECT_EQ(FirstNotUtf8("a\xE2\x82"), 1u) << "a character that is not complete";
  EXPECT_EQ(FirstNotUtf8("a\xE2\x82z"), 1u) << "another one instead of its end";
}

TEST(Utf8Test, OneCharacterIsWrittenInOneWay) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_EQ(FirstNotUtf8(text), 0u);
  }
}

}  // namespace
}  // namespace slipstream
