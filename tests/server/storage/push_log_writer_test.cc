#include "server/storage/push_log_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "common/files/file_descriptor.h"
#include "tests/support/captured_log.h"

namespace slipstream {
namespace {

using testing::EndsWith;
using testing::StartsWith;

class PushLogWriterTest : public testing::Test {
 protected:
  ~PushLogWriterTest() override { std::remove(path_.c_str()); }

  size_t Lines() const {
    std::ifstream file(path_);
    return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }

  const std::string path_ = testing::TempDir() + "/push_log_writer_test.csv";
  CapturedLog log_;
};

TEST_F(PushLogWriterTest, WritesAllThatWasAddedBeforeItGoes) {
  absl::StatusOr<PushLog> file = PushLog::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  {
    PushLogWriter writer(*std::move(file));
    for (int i = 0; i < 1000; ++i) writer.Add({}, {}, {}, 0);
    EXPECT_EQ(writer.failure(), "");
  }
  EXPECT_EQ(Lines(), 1001u) << "with the heading";
}

TEST_F(PushLogWriterTest, FinishesWithAllThatWasAdded) {
  absl::StatusOr<PushLog> file = PushLog::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  PushLogWriter writer(*std::move(file));
  for (int i = 0; i < 1000; ++i) writer.Add({}, {}, {}, 0);

  EXPECT_EQ(writer.Finish(), "");

  EXPECT_EQ(writer.pushes(), 1000u);
  EXPECT_EQ(Lines(), 1001u);
}

TEST_F(PushLogWriterTest, ADiskThatHangsKeepsNobodyWaitingAndEndsTheLog) {
  // A pipe that nobody reads takes 64 KiB, and then a write blocks for ever.
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  FileDescriptor reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  absl::StatusOr<PushLog> file = PushLog::Create(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  {
    PushLogWriter writer(*std::move(file));
    for (size_t i = 0; i < 3 * PushLogWriter::kLinesMax && writer.failure().empty(); ++i) {
      writer.Add({}, {}, {}, 0);
    }
    EXPECT_THAT(writer.failure(), StartsWith("the push log " + path_ + " ends after "));
    EXPECT_THAT(writer.failure(), EndsWith(" pushes: its disk is 65536 lines behind"));
    EXPECT_EQ(log_.Count("ends after"), 1);
  }  // The destructor waits for kEndTime, and not for ever.

  // Keep the reader open: the writer's thread blocks on it until the process ends. If it saw the
  // reader close, it would log while the log is being destroyed.
  reader.Release();
}

}  // namespace
}  // namespace slipstream
