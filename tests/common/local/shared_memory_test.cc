#include "common/local/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "common/local/shared_values.h"

namespace slipstream {
namespace {

constexpr size_t kSize = 8192;

/// A memfd of kSize bytes, all there, with these seals.
FileDescriptor Sealed(int seals) {
  FileDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(posix_fallocate(file.get(), 0, kSize), 0);
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

  made.mapping.data()[0] = std::byte{1};  // The maker still can.
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
  EXPECT_TRUE(MapSharedMemory(Sealed(kAll)).ok());
  EXPECT_TRUE(is_refused(Sealed(F_SEAL_GROW | F_SEAL_FUTURE_WRITE))) << "can be cut short";
  EXPECT_TRUE(is_refused(Sealed(F_SEAL_SHRINK | F_SEAL_GROW))) << "holes can be made";
  EXPECT_TRUE(is_refused(FileDescriptor())) << "no file";
  EXPECT_TRUE(is_refused(FileDescriptor(open("/proc/self/exe", O_RDONLY)))) << "another file";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const FileDescriptor writing(ends[1]);
  EXPECT_TRUE(is_refused(FileDescriptor(ends[0]))) << "a pipe";

  const FileDescriptor sparse(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(sparse.get(), int64_t{1} << 40), 0);
  ASSERT_EQ(fcntl(sparse.get(), F_ADD_SEALS, kAll), 0);
  EXPECT_TRUE(is_refused(sparse)) << "whoever reads it pays for it";
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
  const uint64_t first = SharedValuesLayout::NextGeneration(made.mapping);
  SharedValuesLayout::Values(made.mapping)[9] = 1.5f;

  EXPECT_EQ(SharedValuesLayout::Values(reader)[9], 1.5f);
  EXPECT_EQ(SharedValuesLayout::Generation(reader), first);
  const uint64_t second = SharedValuesLayout::NextGeneration(made.mapping);
  EXPECT_NE(second, first);
  EXPECT_EQ(SharedValuesLayout::Generation(reader), second);
}

}  // namespace
}  // namespace slipstream
