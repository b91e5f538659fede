#include "common/config/scalar_types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "common/base/philox.h"

namespace slipstream {
namespace {

const BytesType kAnyBytes = {};
const NumberType kAnyNumber = {.min = -1e308, .max = 1e308};
const DurationType kAnyDuration = {absl::ZeroDuration(), absl::Hours(1000)};

YamlNode Plain(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = text;
  return node;
}

/// Returns the value as text, or the error.
std::string Read(const ScalarType& type, const std::string& text) {
  const auto value = ReadScalar(type, Plain(text));
  if (const auto* error = std::get_if<ValueError>(&value)) return error->message;
  return WriteScalar(type, std::get<ScalarValue>(value));
}

template <typename T>
T ReadBack(const ScalarType& type, const ScalarValue& value) {
  return std::get<T>(std::get<ScalarValue>(ReadScalar(type, Plain(WriteScalar(type, value)))));
}

TEST(ScalarTypesTest, CountsTakeTheirWholeRange) {
  EXPECT_EQ(Read(CountType{}, "18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(Read(CountType{}, "0"), "0");
  EXPECT_EQ(Read(CountType{1, 9}, "10"), "must be a whole number in [1, 9], not \"10\"");
  EXPECT_EQ(Read(CountType{}, "18446744073709551616"),
            "must be a whole number in [0, 2^64), not \"18446744073709551616\"");
}

TEST(ScalarTypesTest, AFlagsTextIsReadAsItStands) {
  EXPECT_EQ(ScalarError(CountType{0, 255}, "255"), "");
  EXPECT_EQ(ScalarError(CountType{0, 255}, "-1"), "must be a whole number in [0, 255], not \"-1\"");
  EXPECT_EQ(ScalarError(CountType{0, 255}, ""), "must be a whole number in [0, 255], not \"\"");
}

TEST(ScalarTypesTest, BytesTakeBinaryUnitsAndPrintTheLargestThatDivides) {
  EXPECT_EQ(Read(kAnyBytes, "4096"), "4KiB");
  EXPECT_EQ(Read(kAnyBytes, "1024KiB"), "1MiB");
  EXPECT_EQ(Read(kAnyBytes, "1025"), "1025");
  EXPECT_EQ(Read(kAnyBytes, "3GiB"), "3GiB");
  EXPECT_EQ(Read(kAnyBytes, "0"), "0");
  const BytesType few_or_none = {.min = 4096, .max = 8192, .takes_zero = true};
  EXPECT_EQ(Read(few_or_none, "0"), "0");
  EXPECT_EQ(Read(few_or_none, "4096"), "4KiB");
  EXPECT_EQ(Read(few_or_none, "64"), "must be 0, or bytes in [4KiB, 8KiB], not \"64\"");
  EXPECT_EQ(Read(kAnyBytes, "1.5MiB").substr(0, 16), "has the unknown ");
  EXPECT_EQ(Read(kAnyBytes, "99999999999GiB").substr(0, 7), "must be");
}

TEST(ScalarTypesTest, DurationsTakeFractionsDownToAMillisecond) {
  EXPECT_EQ(Read(kAnyDuration, "1.5s"), "1500ms");
  EXPECT_EQ(Read(kAnyDuration, "0.25h"), "15m");
  EXPECT_EQ(Read(kAnyDuration, "60s"), "1m");
  EXPECT_EQ(Read(kAnyDuration, "0ms"), "0s");
  EXPECT_EQ(Read(kAnyDuration, "1000ms"), "1s");
  EXPECT_EQ(Read(kAnyDuration, "0.1ms").substr(0, 7), "must be");
  EXPECT_EQ(Read(kAnyDuration, "99999999999999999999h").substr(0, 7), "must be");
  EXPECT_EQ(Read(kAnyDuration, "5 s").substr(0, 22), "has the unknown unit \"");
}

TEST(ScalarTypesTest, NumbersAreWrittenAsJsonWritesThem) {
  EXPECT_EQ(Read(kAnyNumber, "1e-3"), "0.001");
  EXPECT_EQ(Read(kAnyNumber, "-0"), "0");
  for (const char* text : {"", "-", ".5", "1.", "01", "+1", "1e", "0x1", "inf", "nan", "1e999"}) {
    const std::string result = Read(kAnyNumber, text);
    EXPECT_EQ(result.substr(0, 4), "must") << text;
  }
}

TEST(ScalarTypesTest, EveryFiniteNumberReadsBackAsTheSame) {
  RandomStream random(1, 0);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bits = uint64_t{random.NextWord()} << 32 | random.NextWord();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value) || std::abs(value) > 1e308 || value == 0) continue;
    ASSERT_EQ(ReadBack<double>(kAnyNumber, value), value) << "draw " << i;
  }
}

TEST(ScalarTypesTest, EveryCountOfBytesAndMillisecondsReadsBackAsTheSame) {
  RandomStream random(2, 0);
  for (int i = 0; i < 5'000; ++i) {
    const uint64_t bytes = uint64_t{random.NextWord()} << random.Below(20);
    const absl::Duration time = absl::Milliseconds(random.Below(1u << (1 + random.Below(31))));
    ASSERT_EQ(ReadBack<uint64_t>(kAnyBytes, bytes), bytes) << "draw " << i;
    ASSERT_EQ(ReadBack<absl::Duration>(kAnyDuration, time), time) << "draw " << i;
  }
}

TEST(ScalarTypesTest, TextThatYamlCouldMisreadIsQuoted) {
  EXPECT_EQ(WriteText("localhost:7070"), "localhost:7070");
  EXPECT_EQ(WriteText("../shared/data"), "\"../shared/data\"");
  EXPECT_EQ(WriteText("Yes"), "\"Yes\"");
  EXPECT_EQ(WriteText("7"), "\"7\"");
  EXPECT_EQ(WriteText(""), "\"\"");
  EXPECT_EQ(WriteText("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(WriteText("a: b"), "\"a: b\"");
}

}  // namespace
}  // namespace slipstream
