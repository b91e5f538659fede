#include "server/storage/push_log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace slipstream {
namespace {

constexpr char kHeading[] =
    "worker,incarnation,sequence,batch,examples,base,version,staleness,outcome\n";

class PushLogTest : public testing::Test {
 protected:
  ~PushLogTest() override { std::remove(path_.c_str()); }

  std::string Contents() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string path_ = testing::TempDir() + "/push_log_test.csv";
};

/// Of a push whose line is kLine.
absl::Status AppendPush(PushLog& log) {
  PushHeader header;
  header.identity = {.run = 7, .worker = WorkerId{2}, .incarnation = Incarnation{3}};
  header.sequence = Sequence{5};
  header.batches = {{11, 3}, {20}};
  header.examples = 32;
  header.base = Version{8};
  PushReply reply;
  reply.outcome = PushOutcome::kApplied;
  reply.version = Version{10};
  reply.staleness = 1;
  return log.Append(header, reply);
}

constexpr char kLine[] = "2,3,5,11-13;20,32,8,10,1,APPLIED\n";

TEST_F(PushLogTest, HasALineForEachPush) {
  absl::StatusOr<PushLog> log = PushLog::Create(path_);
  ASSERT_TRUE(log.ok()) << log.status();

  ASSERT_TRUE(AppendPush(*log).ok());
  ASSERT_TRUE(AppendPush(*log).ok());
  ASSERT_TRUE(log->Flush().ok());

  EXPECT_EQ(Contents(), std::string(kHeading) + kLine + kLine);
}

TEST_F(PushLogTest, EmptiesWhatAnEarlierRunLeft) {
  std::ofstream(path_) << std::string(1000, 'x');

  ASSERT_TRUE(PushLog::Create(path_).ok());

  EXPECT_EQ(Contents(), kHeading);
}

TEST_F(PushLogTest, ALogThatIsWrittenIsLeftAloneAndGoesOn) {
  absl::StatusOr<PushLog> log = PushLog::Create(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE(AppendPush(*log).ok());
  ASSERT_TRUE(log->Flush().ok());

  const absl::Status second = PushLog::Create(path_).status();

  EXPECT_EQ(second.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(second.message(), "the push log " + path_ + " is written by another process");
  ASSERT_TRUE(AppendPush(*log).ok());
  ASSERT_TRUE(log->Flush().ok());
  EXPECT_EQ(Contents(), std::string(kHeading) + kLine + kLine);
}

TEST_F(PushLogTest, NamesThePathThatItCannotCreate) {
  const absl::Status failed = PushLog::Create("/no/such/directory/log.csv").status();

  EXPECT_EQ(failed.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(failed.message().find("/no/such/directory/log.csv"), std::string::npos) << failed;
}

}  // namespace
}  // namespace slipstream
