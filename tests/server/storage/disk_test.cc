#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/storage/posix_disk.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

absl::Status Write(Disk& disk, const std::string& path, std::string_view text) {
  absl::StatusOr<std::unique_ptr<DiskFile>> file = disk.Create(path);
  if (!file.ok()) return file.status();
  absl::Status written = (*file)->Append(Bytes(text));
  return written.ok() ? (*file)->Sync() : written;
}

std::string Read(Disk& disk, const std::string& path, uint64_t offset, size_t size) {
  std::string text(size, '\0');
  const absl::Status read = disk.ReadAt(path, offset, std::as_writable_bytes(std::span(text)));
  EXPECT_TRUE(read.ok()) << read;
  return text;
}

/// The promises of both disks.
class DiskTest : public testing::TestWithParam<bool> {
 protected:
  DiskTest() {
    if (GetParam()) {
      disk_ = std::make_unique<SimulatedDisk>();
    } else {
      disk_ = std::make_unique<PosixDisk>();
    }
    EXPECT_TRUE(disk_->MakeDirectories(directory_ + "/a/b").ok());
  }
  ~DiskTest() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = testing::TempDir() + "/disk_test-" + std::to_string(getpid());
  std::unique_ptr<Disk> disk_;
};

TEST_P(DiskTest, KeepsFilesInDirectories) {
  ASSERT_TRUE(Write(*disk_, directory_ + "/a/one", "0123456789").ok());
  ASSERT_TRUE(disk_->MakeDirectories(directory_ + "/a/b").ok()) << "they are there";

  EXPECT_THAT(disk_->List(directory_ + "/a").value(),
              ElementsAre(DiskEntry{.name = "b", .is_directory = true},
                          DiskEntry{.name = "one", .bytes = 10}));
  EXPECT_EQ(Read(*disk_, directory_ + "/a/one", 0, 10), "0123456789");
  EXPECT_EQ(Read(*disk_, directory_ + "/a/one", 7, 3), "789");
  EXPECT_TRUE(disk_->SyncDirectory(directory_ + "/a").ok());
}

TEST_P(DiskTest, AppendsPartsAndCutsAFileOff) {
  const std::string path = directory_ + "/a/one";
  std::vector<std::string> texts;
  std::string all;
  // These are more parts than one call of the system takes.
  for (size_t i = 0; i < 3000; ++i) {
    texts.push_back(std::string(i % 7, static_cast<char>('a' + i % 26)));
    all += texts.back();
  }
  std::vector<std::span<const std::byte>> parts;
  for (const std::string& text : texts) parts.push_back(Bytes(text));
  absl::StatusOr<std::unique_ptr<DiskFile>> file = disk_->Create(path);
  ASSERT_TRUE(file.ok()) << file.status();

  ASSERT_TRUE((*file)->Append(parts).ok());
  ASSERT_TRUE((*file)->Append(Bytes("end")).ok());
  EXPECT_EQ(Read(*disk_, path, 0, all.size() + 3), all + "end");

  ASSERT_TRUE(disk_->Truncate(path, 10).ok());
  EXPECT_THAT(disk_->List(directory_ + "/a").value(),
              Contains(DiskEntry{.name = "one", .bytes = 10}));
  EXPECT_EQ(Read(*disk_, path, 0, 10), all.substr(0, 10));
}

TEST_P(DiskTest, WritesOverBytesOfAFile) {
  const std::string path = directory_ + "/a/one";
  ASSERT_TRUE(Write(*disk_, path, "0123456789").ok());

  ASSERT_TRUE(disk_->WriteAt(path, 3, Bytes("abc")).ok());
  ASSERT_TRUE(disk_->WriteAt(path, 9, Bytes("x")).ok());

  EXPECT_EQ(Read(*disk_, path, 0, 10), "012abc678x");
  EXPECT_THAT(disk_->List(directory_ + "/a").value(),
              Contains(DiskEntry{.name = "one", .bytes = 10}));
}

TEST_P(DiskTest, AppendsManyBytesInOrder) {
  // These are so many that the system is told to write some of them before they are synced.
  std::string all(size_t{13} << 20, '\0');
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i * 7 + i / 4096);
  const std::string_view text(all);
  const size_t small = 1001;
  const size_t large = size_t{9} << 20;
  const std::string path = directory_ + "/a/one";
  absl::StatusOr<std::unique_ptr<DiskFile>> file = disk_->Create(path);
  ASSERT_TRUE(file.ok()) << file.status();

  ASSERT_TRUE((*file)->Append(Bytes(text.substr(0, small))).ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE((*file)->Append(Bytes(text.substr(small, large))).ok());
  const std::vector<std::span<const std::byte>> parts = {Bytes(text.substr(small + large, small)),
                                                         Bytes(text.substr(2 * small + large))};
  ASSERT_TRUE((*file)->Append(parts).ok());
  ASSERT_TRUE((*file)->Sync().ok());

  EXPECT_TRUE(Read(*disk_, path, 0, all.size()) == all);
  EXPECT_THAT(disk_->List(directory_ + "/a").value(),
              Contains(DiskEntry{.name = "one", .bytes = all.size()}));
}

TEST_P(DiskTest, RenamesAndRemoves) {
  ASSERT_TRUE(Write(*disk_, directory_ + "/a/one", "x").ok());

  EXPECT_TRUE(disk_->Rename(directory_ + "/a", directory_ + "/c").ok());
  EXPECT_EQ(Read(*disk_, directory_ + "/c/one", 0, 1), "x");
  EXPECT_FALSE(disk_->Remove(directory_ + "/c").ok()) << "it is not empty";
  EXPECT_TRUE(disk_->Remove(directory_ + "/c/one").ok());
  EXPECT_TRUE(disk_->Remove(directory_ + "/c/b").ok());
  EXPECT_TRUE(disk_->Remove(directory_ + "/c").ok());
  EXPECT_THAT(disk_->List(directory_).value(), IsEmpty());
}

TEST_P(DiskTest, RefusesWhatCannotBeAndNamesThePath) {
  const std::string one = directory_ + "/a/one";
  const std::string none = directory_ + "/none/one";
  ASSERT_TRUE(Write(*disk_, one, "x").ok());
  ASSERT_TRUE(Write(*disk_, directory_ + "/a/b/two", "x").ok());
  ASSERT_TRUE(disk_->MakeDirectories(directory_ + "/c").ok());
  std::byte bytes[2];

  const auto expect = [](const absl::Status& failure, absl::StatusCode code,
                         const std::string& path) {
    EXPECT_EQ(failure.code(), code);
    EXPECT_THAT(std::string(failure.message()), HasSubstr(path));
  };
  expect(disk_->Create(one).status(), absl::StatusCode::kDataLoss, one);
  expect(disk_->ReadAt(one, 0, bytes), absl::StatusCode::kDataLoss, one);
  expect(disk_->MakeDirectories(one + "/x"), absl::StatusCode::kDataLoss, one);
  expect(disk_->Rename(directory_ + "/c", directory_ + "/a"), absl::StatusCode::kDataLoss,
         directory_ + "/a");
  expect(disk_->Create(none).status(), absl::StatusCode::kNotFound, none);
  expect(disk_->ReadAt(none, 0, bytes), absl::StatusCode::kNotFound, none);
  expect(disk_->WriteAt(none, 0, bytes), absl::StatusCode::kNotFound, none);
  expect(disk_->Truncate(none, 0), absl::StatusCode::kNotFound, none);
  expect(disk_->Rename(none, one), absl::StatusCode::kNotFound, none);
  expect(disk_->Remove(none), absl::StatusCode::kNotFound, none);
  expect(disk_->List(none).status(), absl::StatusCode::kNotFound, none);
  expect(disk_->SyncDirectory(none), absl::StatusCode::kNotFound, none);
}

TEST_P(DiskTest, ADirectoryHasOneLock) {
  absl::StatusOr<std::unique_ptr<DiskLock>> first = disk_->Lock(directory_ + "/a");
  ASSERT_TRUE(first.ok()) << first.status();

  EXPECT_EQ(disk_->Lock(directory_ + "/a").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(disk_->Lock(directory_ + "/a/b").ok());
  first->reset();
  EXPECT_TRUE(disk_->Lock(directory_ + "/a").ok());
}

INSTANTIATE_TEST_SUITE_P(Disks, DiskTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Simulated" : "Posix"; });

TEST(PosixDiskTest, NamesTheProcessThatHasALock) {
  const std::string directory = testing::TempDir() + "/locked-" + std::to_string(getpid());
  PosixDisk disk;
  ASSERT_TRUE(disk.MakeDirectories(directory).ok());
  const auto first = disk.Lock(directory);
  ASSERT_TRUE(first.ok()) << first.status();

  const std::string refusal(disk.Lock(directory).status().message());

  EXPECT_THAT(refusal, StartsWith(directory + " is in use by another process (process " +
                                  std::to_string(getpid()) + " on "));
  EXPECT_THAT(refusal, HasSubstr("end that process"));
  std::filesystem::remove_all(directory);
}

TEST(PosixDiskTest, ALinkIsNoDirectory) {
  namespace fs = std::filesystem;
  const std::string directory = testing::TempDir() + "/links-" + std::to_string(getpid());
  fs::create_directories(directory);
  fs::create_directory_symlink("..", directory + "/link");

  EXPECT_THAT(PosixDisk().List(directory).value(), ElementsAre(DiskEntry{.name = "link"}));
  fs::remove_all(directory);
}

TEST(SimulatedDiskTest, ACrashUndoesWhatWasNotSynced) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.MakeDirectories("/a").ok());
  ASSERT_TRUE(Write(disk, "/a/synced", "x").ok());
  ASSERT_TRUE(disk.SyncDirectory("/a").ok());
  ASSERT_TRUE(Write(disk, "/a/without_its_name", "x").ok());
  absl::StatusOr<std::unique_ptr<DiskFile>> file = disk.Create("/a/tail");
  ASSERT_TRUE((*file)->Append(Bytes("head")).ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE(disk.Remove("/a/without_its_name").ok());
  ASSERT_TRUE(disk.SyncDirectory("/a").ok());
  ASSERT_TRUE((*file)->Append(Bytes(" and tail")).ok());
  ASSERT_TRUE(disk.Rename("/a/synced", "/a/renamed").ok());

  disk.Crash();

  EXPECT_THAT(disk.List("/a").value(), ElementsAre(DiskEntry{.name = "synced", .bytes = 1},
                                                   DiskEntry{.name = "tail", .bytes = 4}));
  EXPECT_EQ(Read(disk, "/a/tail", 0, 4), "head");
}

TEST(SimulatedDiskTest, ATruncationIsOnTheDiskAtOnce) {
  SimulatedDisk disk;
  ASSERT_TRUE(disk.MakeDirectories("/a").ok());
  ASSERT_TRUE(Write(disk, "/a/one", "0123456789").ok());
  ASSERT_TRUE(disk.SyncDirectory("/a").ok());

  ASSERT_TRUE(disk.Truncate("/a/one", 4).ok());
  disk.Crash();

  EXPECT_THAT(disk.List("/a").value(), ElementsAre(DiskEntry{.name = "one", .bytes = 4}));
}

/// Makes the file /a/one, whose name is on the disk and whose bytes are not.
std::unique_ptr<DiskFile> NewUnsyncedFile(SimulatedDisk& disk, std::string_view text) {
  EXPECT_TRUE(disk.MakeDirectories("/a").ok());
  std::unique_ptr<DiskFile> file = disk.Create("/a/one").value();
  EXPECT_TRUE(disk.SyncDirectory("/a").ok());
  EXPECT_TRUE(file->Append(Bytes(text)).ok());
  return file;
}

TEST(SimulatedDiskTest, WhatASyncHasDroppedIsReadButOnlyWritingItAgainBringsItToTheDisk) {
  SimulatedDisk disk;
  const std::unique_ptr<DiskFile> file = NewUnsyncedFile(disk, "0123");
  disk.FailCall(1);
  ASSERT_FALSE(file->Sync().ok());
  ASSERT_TRUE(file->Append(Bytes("4567")).ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(disk.Truncate("/a/one", 8).ok());
  EXPECT_EQ(Read(disk, "/a/one", 0, 8), "01234567");

  ASSERT_TRUE(disk.WriteAt("/a/one", 1, Bytes("12")).ok());
  disk.Crash();

  std::string expected = "01234567";
  expected[0] = expected[3] = '\0';
  EXPECT_EQ(Read(disk, "/a/one", 0, 8), expected);
}

TEST(SimulatedDiskTest, WhatTheEndOfAProcessLeavesIsNotDropped) {
  SimulatedDisk disk;
  const std::unique_ptr<DiskFile> file = NewUnsyncedFile(disk, "0123");
  disk.StopAtCall(1);
  ASSERT_FALSE(file->Sync().ok());
  disk.EndFailures();

  ASSERT_TRUE(disk.Truncate("/a/one", 4).ok());
  disk.Crash();

  EXPECT_EQ(Read(disk, "/a/one", 0, 4), "0123");
}

}  // namespace
}  // namespace slipstream
