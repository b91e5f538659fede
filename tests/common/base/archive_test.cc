#include "common/base/archive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slipstream {
namespace {

enum class Color : uint8_t { kRed = 1, kBlue = 200 };

struct Inner {
  std::string name;
  std::optional<int64_t> number;

  friend bool operator==(const Inner&, const Inner&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.name, self.number);
  }
};

/// All kinds of members.
struct Outer {
  bool flag = true;
  uint8_t small = 3;
  uint64_t large = 0;
  int32_t negative = 0;
  float single = 0;
  double twice = 0;
  Color color = Color::kRed;
  std::string text;
  Inner inner;
  std::optional<Inner> perhaps;
  std::optional<std::string> empty_text;
  std::vector<uint64_t> numbers;
  std::vector<double> fractions;
  std::vector<std::string> texts;
  std::vector<std::vector<uint32_t>> nested;
  std::deque<Inner> all;
  std::set<Color> colors;
  std::map<Color, Inner> by_color;
  std::map<std::pair<uint32_t, uint64_t>, std::optional<float>> by_pair;

  friend bool operator==(const Outer&, const Outer&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.flag, self.small, self.large, self.negative, self.single, self.twice, self.color,
            self.text, self.inner, self.perhaps, self.empty_text, self.numbers, self.fractions,
            self.texts, self.nested, self.all, self.colors, self.by_color, self.by_pair);
  }
};

Outer Example() {
  return {.flag = false,
          .small = 255,
          .large = std::numeric_limits<uint64_t>::max(),
          .negative = -5,
          .single = -0.0f,
          .twice = 1e300,
          .color = Color::kBlue,
          .text = std::string("a\0b", 3),
          .inner = {.name = std::string(300, 'x'), .number = -1},
          .perhaps = Inner{},
          .empty_text = "",
          .numbers = {0, 1, 127, 128, uint64_t{1} << 63},
          .fractions = {0.5, -2},
          .texts = {"", "text"},
          .nested = {{}, {1, 2}, {300}},
          .all = {{"one", 1}, {}, {"two", std::nullopt}},
          .colors = {Color::kRed, Color::kBlue},
          .by_color = {{Color::kBlue, {"blue", 7}}},
          .by_pair = {{{1, 2}, std::nullopt}, {{3, 4}, 0.25f}}};
}

template <typename T>
std::string Written(const T& value) {
  ArchiveWriter writer;
  T::Parts(writer, value);
  return writer.Take();
}

/// Reads over a value that has other members already.
template <typename T>
bool IsRead(std::string_view bytes, T& value) {
  ArchiveReader reader(bytes);
  T::Parts(reader, value);
  return reader.is_complete();
}

TEST(ArchiveTest, GivesBackWhatWasWritten) {
  for (const Outer& value : {Outer(), Example()}) {
    Outer read = Example();
    read.numbers = {9};
    EXPECT_TRUE(IsRead(Written(value), read));
    EXPECT_EQ(read, value);
  }
}

TEST(ArchiveTest, WritesProtobuf) {
  // As protoc --encode makes it of {1: "ab" 2: 300}.
  EXPECT_EQ(Written(Inner{"ab", 300}), std::string("\x0a\x02\x61\x62\x10\xac\x02", 7));
}

/// Inner as a later release might have it.
struct LaterInner {
  std::string name;
  std::optional<int64_t> number;
  uint32_t added = 42;
  std::vector<uint32_t> more = {1};

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.name, self.number, self.added, self.more);
  }
};

/// Inner as a later release might have it that has no use for the name.
struct NamelessInner {
  std::optional<int64_t> number;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive.Skip();
    archive(self.number);
  }
};

TEST(ArchiveTest, MembersThatAnOlderReleaseLacksKeepTheirDefaults) {
  LaterInner later;
  ASSERT_TRUE(IsRead(Written(Inner{"name", 5}), later));
  EXPECT_EQ(later.number, 5);
  EXPECT_EQ(later.added, 42u);
}

TEST(ArchiveTest, ANumberThatIsOutOfUseIsLeftOut) {
  NamelessInner nameless;
  ASSERT_TRUE(IsRead(Written(Inner{"name", 5}), nameless));
  EXPECT_EQ(nameless.number, 5);

  Inner inner;
  ASSERT_TRUE(IsRead(Written(NamelessInner{6}), inner));
  EXPECT_EQ(inner, (Inner{"", 6}));
}

TEST(ArchiveTest, DoesNotTakeMembersThatItDoesNotKnow) {
  Inner inner;
  EXPECT_FALSE(IsRead(Written(LaterInner{.name = "name"}), inner));
}

TEST(ArchiveTest, BytesThatEndEarlyOrSayNonsenseFail) {
  const std::string whole = Written(Example());
  // Where a field ends, what follows is missing, as from an older release.
  size_t taken = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    Outer read;
    taken += IsRead(whole.substr(0, size), read) ? 1 : 0;
  }
  EXPECT_LE(taken, 30u);

  Outer read;
  EXPECT_FALSE(IsRead(whole + '\0', read));
  EXPECT_FALSE(IsRead("\x08\x02", read)) << "a bool is 0 or 1";
  EXPECT_FALSE(IsRead("\x10\xff\x7f", read)) << "too large for a byte";
  EXPECT_FALSE(IsRead("\x0a\x01\x01", read)) << "bytes where a number is expected";
  EXPECT_FALSE(IsRead("\x42\x7f", read)) << "a text that ends early";
  EXPECT_FALSE(IsRead("\x18\x01\x10\x01", read)) << "fields in another order";
  EXPECT_FALSE(IsRead(std::string(20, '\xff'), read)) << "a number without an end";
}

}  // namespace
}  // namespace slipstream
