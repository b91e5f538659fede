#include "server/storage/push_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace slipstream {
namespace {

constexpr char kHeading[] =
    "time,worker,incarnation,sequence,batch,examples,base,version,staleness,outcome,loss,stage\n";

class PushLogTest : public testing::Test {
 protected:
  ~PushLogTest() override { std::remove(path_.c_str()); }

  std::string Contents() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string path_ = testing::TempDir() + "/push_log_test.csv";
};

/// Limits the size of this process's files, as if the disk were full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() { EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
};

/// Appends a push whose line is kLine.
void AppendPush(PushLog& log) {
  PushHeader header;
  header.identity = {.run = 7, .worker = WorkerId{2}, .incarnation = Incarnation{3}};
  header.sequence = Sequence{5};
  header.batches = {{11, 3}, {20}};
  header.examples = 32;
  header.base = Version{8};
  header.trailer.loss = 0.25f;
  PushReply reply;
  reply.outcome = PushOutcome::kApplied;
  reply.version = Version{10};
  reply.staleness = 1;
  log.Append(absl::FromUnixMicros(1'700'000'000'250'000), header, reply, 4);
}

constexpr char kLine[] = "1700000000.250000,2,3,5,11-13;20,32,8,10,1,APPLIED,0.25,4\n";

TEST_F(PushLogTest, HasALineForEachPush) {
  absl::StatusOr<PushLog> log = PushLog::Create(path_);
  ASSERT_TRUE(log.ok()) << log.status();

  AppendPush(*log);
  AppendPush(*log);
  ASSERT_TRUE(log->Flush().ok());

  EXPECT_EQ(Contents(), std::string(kHeading) + kLine + kLine);
}

TEST_F(PushLogTest, LeavesOutALossThatNobodyTold) {
  absl::StatusOr<PushLog> log = PushLog::Create(path_);
  ASSERT_TRUE(log.ok()) << log.status();

  log->Append(absl::FromUnixSeconds(1), {}, {}, 0);
  ASSERT_TRUE(log->Flush().ok());

  EXPECT_EQ(Contents(), std::string(kHeading) + "1.000000,0,0,0,,0,0,0,0,APPLIED,,0\n");
}

TEST_F(PushLogTest, EmptiesWhatAnEarlierRunLeft) {
  std::ofstream(path_) << std::string(1000, 'x');

  ASSERT_TRUE(PushLog::Create(path_).ok());

  EXPECT_EQ(Contents(), kHeading);
}

TEST_F(PushLogTest, ALogThatIsWrittenIsLeftAloneAndGoesOn) {
  absl::StatusOr<PushLog> log = PushLog::Create(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  AppendPush(*log);
  ASSERT_TRUE(log->Flush().ok());

  const absl::Status second = PushLog::Create(path_).status();

  EXPECT_EQ(second.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(second.message(), "the push log " + path_ +
                                  " is written by another process: end that, or choose another "
                                  "log.push_log");
  AppendPush(*log);
  ASSERT_TRUE(log->Flush().ok());
  EXPECT_EQ(Contents(), std::string(kHeading) + kLine + kLine);
}

TEST_F(PushLogTest, IsNotWrittenThroughALink) {
  const std::string precious = path_ + ".precious";
  std::ofstream(precious) << "mine";
  std::filesystem::remove(path_);
  std::filesystem::create_symlink(precious, path_);

  const absl::Status refused = PushLog::Create(path_).status();

  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(refused.message().find("it is a symbolic link"), absl::string_view::npos) << refused;
  std::ifstream file(precious);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
  std::filesystem::remove(path_);
  std::filesystem::remove(precious);
}

TEST_F(PushLogTest, EndsWithAWholeLineWhereTheDiskIsFull) {
  absl::StatusOr<PushLog> log = PushLog::Create(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  AppendPush(*log);
  ASSERT_TRUE(log->Flush().ok());
  const std::string whole = std::string(kHeading) + kLine;
  const FileSizeLimit limit(whole.size() + 3 * strlen(kLine) / 2);

  AppendPush(*log);
  AppendPush(*log);
  const absl::Status full = log->Flush();

  EXPECT_EQ(full.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(full.message(), "the push log " + path_ + " ends after 2 pushes: File too large");
  EXPECT_EQ(log->pushes(), 2u);
  EXPECT_EQ(Contents(), whole + kLine);
  AppendPush(*log);
  EXPECT_FALSE(log->Flush().ok()) << "lines after a gap would deceive";
  EXPECT_EQ(Contents(), whole + kLine);
}

TEST_F(PushLogTest, NamesThePathThatItCannotCreate) {
  const absl::Status failed = PushLog::Create("/no/such/directory/log.csv").status();

  EXPECT_EQ(failed.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(failed.message().find("/no/such/directory/log.csv"), std::string::npos) << failed;
}

}  // namespace
}  // namespace slipstream
