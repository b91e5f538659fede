#include "common/base/log_line.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"

namespace slipstream {
namespace {

TEST(LogLineTest, HasItsFieldsAfterItsWords) {
  EXPECT_EQ(TextOf(LogLine("nothing is encrypted")), "nothing is encrypted");
  EXPECT_EQ(TextOf(LogLine("worker registered", {{"worker", 3u}, {"host", "gpu-7"}})),
            "worker registered worker=3 host=gpu-7");
}

TEST(LogLineTest, WritesNumbersAsPeopleReadThem) {
  EXPECT_EQ(TextOf(LogLine("x", {{"least", std::numeric_limits<int64_t>::min()},
                                 {"most", std::numeric_limits<uint64_t>::max()},
                                 {"small", uint8_t{7}},
                                 {"share", 1.0 / 3},
                                 {"yes", true}})),
            "x least=-9223372036854775808 most=18446744073709551615 small=7 share=0.3333 yes=true");
}

TEST(LogLineTest, TakesTextOfEveryKind) {
  const char name[8] = "array";
  EXPECT_EQ(TextOf(LogLine("x", {{"a", name},
                                 {"b", std::string("string")},
                                 {"c", std::string_view("view")},
                                 {"d", absl::string_view("abseil")}})),
            "x a=array b=string c=view d=abseil");
}

TEST(LogLineTest, NoTextPassesForAField) {
  EXPECT_EQ(
      TextOf(LogLine("left", {{"a", "two words"}, {"b", ""}, {"c", "x=1"}, {"d", "a\" b=\""}})),
      "left a=\"two words\" b=\"\" c=\"x=1\" d=\"a' b='\"");
}

}  // namespace
}  // namespace slipstream
