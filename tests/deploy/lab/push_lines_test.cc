#include "deploy/lab/push_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

const std::string kHeading =
    "time,worker,incarnation,sequence,batch,examples,base,version,staleness,outcome,loss,stage\n";

TEST(PushLines, AreReadAsThePushLogWritesThem) {
  const auto lines = ReadPushLines(
      kHeading +
          "1.5,3,4,7,8-15;40,256,11,14,2,APPLIED,0.25,1\n1.6,0,1,1,,0,0,0,0,BUFFERED,,0\n2.0,1",
      "log.csv");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2);  // The last line was cut off.
  const PushLine& line = lines->front();
  EXPECT_EQ(line.number, 2);
  EXPECT_EQ(line.worker, WorkerId{3});
  EXPECT_EQ(line.batches, (BatchRanges{{8, 8}, {40, 1}}));
  EXPECT_EQ(line.base, Version{11});
  EXPECT_TRUE(line.counts());
  EXPECT_EQ(line.stage, 1);
  EXPECT_TRUE(lines->back().batches.empty());
}

TEST(PushLines, NameTheLineThatIsNone) {
  const auto lines =
      ReadPushLines(kHeading + "1.5,3,4,x,8,256,11,14,2,APPLIED,0.25,1\n", "log.csv");
  EXPECT_TRUE(absl::IsDataLoss(lines.status()));
  EXPECT_EQ(lines.status().message(), "log.csv:2: this is no line of a push log");
  EXPECT_TRUE(absl::IsDataLoss(ReadPushLines("a,b\n", "log.csv").status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadPushLines("", "log.csv").status()));
}

}  // namespace
}  // namespace slipstream
