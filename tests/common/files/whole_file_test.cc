#include "common/files/whole_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace slipstream {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

namespace fs = std::filesystem;

/// Limits the size of this process's files to `bytes` while it lives, as if the disk were full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = previous_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_ = {};
  void (*previous_handler_)(int) = nullptr;
};

/// Uses an empty directory.
class WholeFileTest : public testing::Test {
 protected:
  WholeFileTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }

  std::string Path(const std::string& name) const { return folder_ / name; }

  std::string Content(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  /// Makes a file look as if it had been written this long ago.
  void Age(const std::string& name, std::chrono::seconds age) const {
    fs::last_write_time(Path(name), fs::file_time_type::clock::now() - age);
  }

  void WriteAged(const std::string& name, std::chrono::seconds age) const {
    std::ofstream(Path(name)) << "half";
    Age(name, age);
  }

  const fs::path folder_;
};

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST_F(WholeFileTest, HoldsWhatWasWrittenAndNothingElseIsLeft) {
  ASSERT_TRUE(WriteWholeFile(Path("file"), "an earlier, longer text").ok());

  ASSERT_TRUE(WriteWholeFile(Path("file"), "a text").ok());

  EXPECT_EQ(Content("file"), "a text");
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_F(WholeFileTest, ShowsTheOldContentsUntilItIsPublished) {
  ASSERT_TRUE(WriteWholeFile(Path("file"), "old").ok());
  absl::StatusOr<WholeFile> file = WholeFile::Create(Path("file"));
  ASSERT_TRUE(file.ok());

  ASSERT_TRUE(file->Append(std::as_bytes(std::span("new", 3))).ok());
  EXPECT_EQ(Content("file"), "old");
  ASSERT_TRUE(file->Publish().ok());

  EXPECT_EQ(Content("file"), "new");
}

TEST_F(WholeFileTest, LeavesNothingBehindIfItIsNotPublished) {
  {
    absl::StatusOr<WholeFile> file = WholeFile::Create(Path("file"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Append(std::as_bytes(std::span("half", 4))).ok());
  }

  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(WholeFileTest, ADiskThatFillsUpKeepsTheOldFileAndIsNamed) {
  ASSERT_TRUE(WriteWholeFile(Path("file"), "old").ok());
  absl::Status status;
  {
    const FileSizeLimit full(4096);
    status = WriteWholeFile(Path("file"), std::string(10'000, 'x'));
  }

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(status), "cannot write " + Path("file") + ": File too large");
  EXPECT_EQ(Content("file"), "old");
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_F(WholeFileTest, NamesThePathThatCannotBeWritten) {
  const absl::Status status = WriteWholeFile(Path("none") + "/file", "x");

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("none/file"), HasSubstr("No such file")));
}

TEST_F(WholeFileTest, NeverReplacesWhatIsNoPlainFile) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  fs::create_directory(Path("directory"));

  EXPECT_THAT(Message(WriteWholeFile(Path("pipe"), "x")), HasSubstr("no plain file"));
  EXPECT_THAT(Message(WriteWholeFile(Path("directory"), "x")), HasSubstr("no plain file"));
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
}

TEST_F(WholeFileTest, WhatAKilledWriterLeftIsRemovedOnceItIsOld) {
  WriteAged("model.safetensors.0123456789abcdef.unfinished", std::chrono::minutes(61));
  WriteAged("model.safetensors.fedcba9876543210.unfinished", std::chrono::minutes(10));
  WriteAged("model.safetensors.unfinished", std::chrono::hours(48));
  WriteAged("model.safetensors", std::chrono::hours(48));
  fs::create_symlink(Path("model.safetensors"), Path("link.0123456789abcdef.unfinished"));

  RemoveAbandonedFiles(folder_);

  EXPECT_THAT(Names(), UnorderedElementsAre("model.safetensors.fedcba9876543210.unfinished",
                                            "model.safetensors.unfinished", "model.safetensors",
                                            "link.0123456789abcdef.unfinished"));
  RemoveAbandonedFiles(Path("none"));
}

TEST_F(WholeFileTest, WhatIsBeingWrittenIsNeverRemovedHoweverOldItLooks) {
  absl::StatusOr<WholeFile> file = WholeFile::Create(Path("model"));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(Names().size(), 1u);
  Age(Names().front(), std::chrono::hours(48));

  RemoveAbandonedFiles(folder_);

  EXPECT_EQ(Names().size(), 1u);
  EXPECT_TRUE(file->Publish().ok());
  EXPECT_THAT(Names(), ElementsAre("model"));
}

TEST_F(WholeFileTest, WritersOfOnePathNeverMixTheirContents) {
  const std::string a(100'000, 'a');
  const std::string b(100'000, 'b');
  const auto write_often = [this](const std::string& contents) {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(WriteWholeFile(Path("file"), contents).ok());
  };

  std::thread other(write_often, a);
  write_often(b);
  other.join();

  EXPECT_TRUE(Content("file") == a || Content("file") == b);
  EXPECT_THAT(Names(), ElementsAre("file"));
}

}  // namespace
}  // namespace slipstream
