#include "server/storage/coordinator_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace slipstream {
namespace {

using ::testing::HasSubstr;

class CoordinatorJournalTest : public testing::Test {
 protected:
  CoordinatorJournalTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~CoordinatorJournalTest() override { std::filesystem::remove_all(directory_); }

  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Makes the file hold this, and expects that reading it fails and names the file.
  void ExpectRefused(const std::string& contents) {
    std::ofstream(path_, std::ios::binary) << contents;
    const auto read = ReadJournal(directory_);
    ASSERT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(path_));
  }

  const std::string directory_ = testing::TempDir() + "/coordinator_journal_test";
  const std::string path_ = directory_ + "/coordinator.state";
  const SavedCoordinator saved_ = {
      .settings = "seed: 1", .settings_now = "seed: 2", .state = std::string("\0\1state", 7)};
};

TEST_F(CoordinatorJournalTest, ReadsWhatWasWrittenLast) {
  ASSERT_TRUE(
      WriteJournal(directory_, {.settings = "older", .settings_now = "", .state = ""}).ok());
  ASSERT_TRUE(WriteJournal(directory_, saved_).ok());

  const auto read = ReadJournal(directory_);

  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(read->has_value());
  EXPECT_EQ((*read)->settings, saved_.settings);
  EXPECT_EQ((*read)->settings_now, saved_.settings_now);
  EXPECT_EQ((*read)->state, saved_.state);
}

TEST_F(CoordinatorJournalTest, FindsNothingWhereNothingWasWritten) {
  const auto read = ReadJournal(directory_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->has_value());
}

TEST_F(CoordinatorJournalTest, RefusesEveryTruncation) {
  ASSERT_TRUE(WriteJournal(directory_, saved_).ok());
  const std::string whole = Contents();
  for (size_t size = 0; size < whole.size(); ++size) ExpectRefused(whole.substr(0, size));
}

TEST_F(CoordinatorJournalTest, RefusesEveryBitFlip) {
  ASSERT_TRUE(WriteJournal(directory_, saved_).ok());
  const std::string whole = Contents();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ExpectRefused(damaged);
  }
}

TEST_F(CoordinatorJournalTest, NamesTheReleaseThatWroteWhatItCannotRead) {
  std::ofstream(path_) << "slipstream coordinator state, format 9, written by version 9.0.0\nrest";
  EXPECT_THAT(std::string(ReadJournal(directory_).status().message()),
              HasSubstr("slipstream 9.0.0 has written it, in format 9"));
}

TEST_F(CoordinatorJournalTest, SaysWhyItCannotBeWritten) {
  const absl::Status written = WriteJournal(directory_ + "/missing", saved_);
  EXPECT_EQ(written.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(written.message()), HasSubstr("missing"));
}

}  // namespace
}  // namespace slipstream
