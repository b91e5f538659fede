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

TEST(SharedMemoryTest, BothEndsSeeTheSameBytes) {
  const SharedMemory made = MakeSharedMemory(kSize, SharedWriters::kEveryone).value();
  const SharedMapping other = MapSharedMemory(made.file, kSize, SharedWriters::kEveryone).value();

  EXPECT_EQ(made.mapping.data()[kSize - 1], std::byte{0});
  other.data()[kSize - 1] = std::byte{7};
  EXPECT_EQ(made.mapping.data()[kSize - 1], std::byte{7});
}

TEST(SharedMemoryTest, NobodyCanChangeItsSizeOrItsSeals) {
  for (const SharedWriters writers : {SharedWriters::kEveryone, SharedWriters::kMakerAlone}) {
    const SharedMemory made = MakeSharedMemory(kSize, writers).value();
    EXPECT_EQ(ftruncate(made.file.get(), kSize / 2), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(ftruncate(made.file.get(), kSize * 2), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(fcntl(made.file.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
    EXPECT_EQ(errno, EPERM);
  }
}

TEST(SharedMemoryTest, WhatTheMakerAloneWritesNobodyElseCan) {
  const SharedMemory made = MakeSharedMemory(kSize, SharedWriters::kMakerAlone).value();
  const SharedMapping reader =
      MapSharedMemory(made.file, kSize, SharedWriters::kMakerAlone).value();

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

TEST(SharedMemoryTest, MemoryThatCouldShrinkOrIsOfAnotherSizeIsNotMapped) {
  const FileDescriptor unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kSize), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      MapSharedMemory(unsealed, kSize, SharedWriters::kEveryone).status()));

  const SharedMemory made = MakeSharedMemory(kSize, SharedWriters::kEveryone).value();
  for (const size_t size : {kSize - 1, kSize + 4096}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(
        MapSharedMemory(made.file, size, SharedWriters::kEveryone).status()));
  }
}

TEST(SharedMemoryTest, WhatCannotBeHadIsAnError) {
  constexpr size_t kMoreThanThereIs = std::numeric_limits<size_t>::max() / 4;
  EXPECT_TRUE(absl::IsResourceExhausted(
      MakeSharedMemory(kMoreThanThereIs, SharedWriters::kEveryone).status()));
}

TEST(SharedValuesTest, AReaderSeesThatValuesWereReplaced) {
  const size_t size = SharedValuesLayout::Bytes(10);
  const SharedMemory made = MakeSharedMemory(size, SharedWriters::kMakerAlone).value();
  const SharedMapping reader = MapSharedMemory(made.file, size, SharedWriters::kMakerAlone).value();
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
