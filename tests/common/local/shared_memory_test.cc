#include "common/local/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <thread>

#include "common/local/shared_values.h"
#include "common/memory/large_pages.h"

namespace slipstream {
namespace {

constexpr size_t kSize = 8192;

/// Returns a memfd of `size` bytes, `there` of them allocated, with these seals.
FileDescriptor Sealed(int seals, size_t size = kSize, size_t there = kSize) {
  FileDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(size)), 0);
  EXPECT_TRUE(there == 0 || posix_fallocate(file.get(), 0, static_cast<off_t>(there)) == 0);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

TEST(SharedMemoryTest, OthersSeeWhatTheMakerWrites) {
  const SharedMemory made = MakeSharedMemory(kSize).value();
  const SharedMapping reader = MapSharedMemory(made.file, kSize).value();

  EXPECT_EQ(reader.data()[kSize - 1], std::byte{0});
  made.mapping.data()[kSize - 1] = std::byte{7};
  EXPECT_EQ(reader.data()[kSize - 1], std::byte{7});
}

TEST(SharedMemoryTest, NobodyCanChangeItsSizeOrItsSealsOrTakePagesOut) {
  const SharedMemory made = MakeSharedMemory(kSize).value();
  for (const int64_t size : {kSize / 2, kSize * 2}) {
    EXPECT_EQ(ftruncate(made.file.get(), size), -1);
    EXPECT_EQ(errno, EPERM);
  }
  EXPECT_EQ(fcntl(made.file.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(fallocate(made.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kSize), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(SharedMemoryTest, NobodyElseCanWriteToIt) {
  const SharedMemory made = MakeSharedMemory(kSize).value();
  const SharedMapping reader = MapSharedMemory(made.file).value();

  made.mapping.data()[0] = std::byte{1};  // The maker can still write.
  EXPECT_EQ(reader.data()[0], std::byte{1});
  EXPECT_EQ(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, made.file.get(), 0),
            MAP_FAILED);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(mprotect(reader.data(), kSize, PROT_READ | PROT_WRITE), -1);
  const std::byte byte{2};
  EXPECT_EQ(pwrite(made.file.get(), &byte, 1, 0), -1);
  EXPECT_EQ(made.mapping.data()[0], std::byte{1});
}

TEST(SharedMemoryTest, WhatCouldGoAwayOrHasToBeMadeIsNotMapped) {
  const auto is_refused = [](const FileDescriptor& file) {
    return absl::IsFailedPrecondition(MapSharedMemory(file).status());
  };
  constexpr int kAll = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
  constexpr size_t kOdd = kLargePagesBytesMin + 4096;
  EXPECT_TRUE(MapSharedMemory(Sealed(kAll)).ok());
  EXPECT_TRUE(is_refused(Sealed(F_SEAL_GROW | F_SEAL_FUTURE_WRITE))) << "can be cut short";
  EXPECT_TRUE(is_refused(Sealed(F_SEAL_SHRINK | F_SEAL_GROW))) << "holes can be made";
  EXPECT_TRUE(is_refused(FileDescriptor())) << "no file";
  EXPECT_TRUE(is_refused(FileDescriptor(open("/proc/self/exe", O_RDONLY)))) << "another file";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const FileDescriptor writing(ends[1]);
  EXPECT_TRUE(is_refused(FileDescriptor(ends[0]))) << "a pipe";
  EXPECT_TRUE(is_refused(Sealed(kAll, kOdd, kOdd))) << "no size of ours";
  EXPECT_TRUE(is_refused(Sealed(kAll, 0, 0))) << "empty";
}

TEST(SharedMemoryTest, WhatWhoeverReadsItHasToPayForIsNotMapped) {
  constexpr int kAll = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;
  for (const size_t missing : {1, 100, 4096}) {
    const FileDescriptor file = Sealed(kAll, kSize + missing, kSize);
    EXPECT_TRUE(absl::IsFailedPrecondition(MapSharedMemory(file).status())) << missing;
  }
  const FileDescriptor sparse(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(sparse.get(), int64_t{1} << 40), 0);
  ASSERT_EQ(fcntl(sparse.get(), F_ADD_SEALS, kAll), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(MapSharedMemory(sparse).status()));

  const FileDescriptor behind(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(behind.get(), kSize), 0);
  ASSERT_EQ(fallocate(behind.get(), FALLOC_FL_KEEP_SIZE, kSize, kSize), 0) << "counts as much";
  ASSERT_EQ(fcntl(behind.get(), F_ADD_SEALS, kAll), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(MapSharedMemory(behind).status()));
}

// A check of the size before the seals could be deceived. (The race needs many tries.)
TEST(SharedMemoryTest, SealsThatComeLateHelpNobody) {
  for (int i = 0; i < 5000; ++i) {
    const FileDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(posix_fallocate(file.get(), 0, kSize), 0);
    std::thread maker([&] {
      EXPECT_EQ(ftruncate(file.get(), 0), 0);
      EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE),
                0);
    });
    const auto mapping = MapSharedMemory(file);
    maker.join();
    EXPECT_TRUE(absl::IsFailedPrecondition(mapping.status())) << "of nothing, at most";
  }
}

TEST(SharedMemoryTest, AnotherSizeThanExpectedIsNotMapped) {
  const SharedMemory made = MakeSharedMemory(kSize).value();
  for (const size_t size : {kSize - 1, kSize + 4096}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(MapSharedMemory(made.file, size).status()));
  }
}

TEST(SharedMemoryTest, WhatCannotBeHadIsAnError) {
  constexpr size_t kMoreThanThereIs = std::numeric_limits<size_t>::max() / 4;
  EXPECT_TRUE(absl::IsResourceExhausted(MakeSharedMemory(kMoreThanThereIs).status()));
}

TEST(SharedValuesTest, AReaderSeesThatValuesWereReplaced) {
  const size_t size = SharedValuesLayout::Bytes(10);
  const SharedMemory made = MakeSharedMemory(size).value();
  const SharedMapping reader = MapSharedMemory(made.file, size).value();
  const uint64_t first = SharedValuesLayout::NextFilling(made.mapping);
  SharedValuesLayout::Values(made.mapping)[9] = 1.5f;

  EXPECT_EQ(SharedValuesLayout::Values(reader)[9], 1.5f);
  EXPECT_EQ(SharedValuesLayout::Filling(reader), first);
  const uint64_t second = SharedValuesLayout::NextFilling(made.mapping);
  EXPECT_NE(second, first);
  EXPECT_EQ(SharedValuesLayout::Filling(reader), second);
}

}  // namespace
}  // namespace slipstream
