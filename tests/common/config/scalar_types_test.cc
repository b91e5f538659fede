#include "common/config/scalar_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "common/base/philox.h"

namespace slipstream {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

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
  EXPECT_EQ(Read(CountType{1, 9}, "10"), "must be a whole number in [1, 9]: 10 is too large");
  EXPECT_EQ(Read(CountType{}, "18446744073709551616"),
            "must be a whole number in [0, 2^64): 18446744073709551616 is too large");
  EXPECT_EQ(Read(CountType{}, "-1"), "must be a whole number in [0, 2^64): -1 is too small");
}

TEST(ScalarTypesTest, AFlagsTextIsReadAsItStands) {
  EXPECT_EQ(ScalarError(CountType{0, 255}, "255"), "");
  EXPECT_EQ(ScalarError(CountType{0, 255}, "-1"),
            "must be a whole number in [0, 255]: -1 is too small");
  EXPECT_EQ(ScalarError(CountType{0, 255}, ""),
            "must be a whole number in [0, 255]: \"\" is not a number");
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
  EXPECT_EQ(Read(few_or_none, "64"), "must be 0, or bytes in [4KiB, 8KiB]: 64 is too small");
  EXPECT_EQ(Read(kAnyBytes, "1.5MiB"), "1536KiB");
  EXPECT_EQ(Read(kAnyBytes, "0x1000"), "4KiB");
  EXPECT_THAT(Read(kAnyBytes, "1.3KiB"), EndsWith(": 1.3KiB is no whole number of bytes"));
  EXPECT_THAT(Read(kAnyBytes, "99999999999GiB"), EndsWith(": 99999999999GiB is too large"));
  EXPECT_THAT(Read(kAnyBytes, std::string(400, '9') + "B"), HasSubstr("unknown unit"));
  EXPECT_THAT(Read(kAnyBytes, std::string(400, '9')), EndsWith("is too large"));
  EXPECT_THAT(Read(kAnyBytes, "-1KiB"), EndsWith(": -1KiB is too small"));
  EXPECT_EQ(Read(kAnyBytes, "4 mb"),
            "has the unknown unit \" mb\"; units are KiB, MiB and GiB; did you mean 4MiB?");
}

TEST(ScalarTypesTest, DurationsTakeFractionsDownToAMillisecond) {
  EXPECT_EQ(Read(kAnyDuration, "1.5s"), "1500ms");
  EXPECT_EQ(Read(kAnyDuration, "0.25h"), "15m");
  EXPECT_EQ(Read(kAnyDuration, "60s"), "1m");
  EXPECT_EQ(Read(kAnyDuration, "0ms"), "0s");
  EXPECT_EQ(Read(kAnyDuration, "1000ms"), "1s");
  EXPECT_EQ(Read(kAnyDuration, ".5s"), "500ms");
  EXPECT_EQ(Read(kAnyDuration, "+2.s"), "2s");
  EXPECT_THAT(Read(kAnyDuration, "0.1ms"), EndsWith(": 0.1ms is no whole number of milliseconds"));
  EXPECT_THAT(Read(kAnyDuration, "99999999999999999999h"),
              EndsWith("99999999999999999999h is too long"));
  EXPECT_THAT(Read(kAnyDuration, std::string(400, '9') + "h"), EndsWith("is too long"));
  EXPECT_EQ(Read(kAnyDuration, "5 s"),
            "has the unknown unit \" s\"; units are ms, s, m and h; did you mean 5s?");
  EXPECT_THAT(Read(kAnyDuration, "10 minutes"), EndsWith("; did you mean 10m?"));
}

TEST(ScalarTypesTest, NumbersAreThoseOfYamlsCoreSchema) {
  const std::pair<const char*, const char*> numbers[] = {
      {"1e-3", "0.001"},  {"-0", "0"},     {".05", "0.05"},  {"1.", "1"},
      {"3.e-4", "3e-04"}, {"+0.1", "0.1"}, {"-.5E+1", "-5"}, {"00.5", "0.5"},
      {"0x1F", "31"},     {"0o17", "15"},  {"+12", "12"},    {"1e-999", "0"}};
  for (const auto& [text, value] : numbers) EXPECT_EQ(Read(kAnyNumber, text), value) << text;
  for (const char* text : {"-", ".", "+", "1e", "0x", "-0x1", "0X1", "0o8", "inf", "nan", "1_000",
                           "1,5", "0b1", "1:30", "5s"}) {
    EXPECT_THAT(Read(kAnyNumber, text), HasSubstr(" is not a number")) << text;
  }
  for (const char* text : {".inf", "-.INF", "+.Inf", ".nan", ".NaN", ".NAN"}) {
    EXPECT_THAT(Read(kAnyNumber, text), EndsWith(" is not finite")) << text;
    EXPECT_THAT(Read(CountType{}, text), StartsWith("must be a whole number in [0, 2^64): "))
        << text;
  }
  EXPECT_THAT(Read(kAnyNumber, "1e999"), EndsWith(": 1e999 is too large"));
  EXPECT_THAT(Read(kAnyNumber, "01"), EndsWith("; write 1"));
}

TEST(ScalarTypesTest, CountsAreTheWholeNumbersOfYamlsCoreSchema) {
  EXPECT_EQ(Read(CountType{}, "0x1F"), "31");
  EXPECT_EQ(Read(CountType{}, "0o17"), "15");
  EXPECT_EQ(Read(CountType{}, "+7"), "7");
  EXPECT_EQ(Read(CountType{}, "-0"), "0");
  EXPECT_EQ(Read(CountType{}, "0xFFFFFFFFFFFFFFFF"), "18446744073709551615");
  EXPECT_THAT(Read(CountType{}, "0x10000000000000000"), EndsWith(" is too large"));
  EXPECT_THAT(Read(CountType{}, "2.5"), EndsWith(": \"2.5\" is not a whole number"));
}

TEST(ScalarTypesTest, TruthIsThatOfYamlsCoreSchema) {
  for (const char* text : {"true", "True", "TRUE"}) EXPECT_EQ(Read(FlagType{}, text), "true");
  for (const char* text : {"false", "False", "FALSE"}) EXPECT_EQ(Read(FlagType{}, text), "false");
  for (const char* text : {"yes", "On", "y", "1", "ture"}) {
    EXPECT_THAT(Read(FlagType{}, text), HasSubstr("; did you mean ")) << text;
  }
  EXPECT_EQ(Read(FlagType{}, "off"), "must be true or false, not \"off\"; did you mean false?");
  EXPECT_EQ(Read(FlagType{}, "tRUE"),
            "must be true or false, not \"tRUE\"; did you mean \"true\"?");
}

TEST(ScalarTypesTest, NearMissesOfNumbersAreShownAsTheyShouldBeWritten) {
  EXPECT_THAT(Read(kAnyNumber, "0,05"), EndsWith(": \"0,05\" is not a number; write 0.05"));
  EXPECT_THAT(Read(kAnyNumber, "5%"), EndsWith("; write 0.05"));
  EXPECT_THAT(Read(kAnyNumber, "1_000.5"), EndsWith("; write 1000.5"));
  EXPECT_THAT(Read(CountType{}, "60,000"), EndsWith("; write 60000"));
  EXPECT_THAT(Read(CountType{}, "1e3"), EndsWith(": \"1e3\" is not a whole number; write 1000"));
  EXPECT_THAT(Read(CountType{0, 9}, "1e3"), EndsWith(" is not a whole number"));
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
