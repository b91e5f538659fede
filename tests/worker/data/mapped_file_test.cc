#include "worker/data/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/process/exit_code.h"
#include "tests/worker/data/gzip.h"
#include "tests/worker/data/temp_directory.h"

namespace slipstream {
namespace {

Bytes Pattern(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * i / 7);
  return bytes;
}

Bytes Copied(const SharedBytes& shared) { return {shared.bytes.begin(), shared.bytes.end()}; }

std::string MessageOf(const absl::StatusOr<SharedBytes>& result) {
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss) << result.status();
  return std::string(result.status().message());
}

TEST(MapFileTest, GivesTheWholeFileOfAnySize) {
  const TempDirectory directory;
  for (const size_t size : {size_t{0}, size_t{1}, (size_t{1} << 20) - 1, size_t{1} << 20,
                            (size_t{1} << 20) + 1, size_t{3} << 20}) {
    SCOPED_TRACE(size);
    directory.Write("file", Pattern(size));

    const absl::StatusOr<SharedBytes> bytes = MapFile(directory.path() + "/file");

    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_TRUE(Copied(*bytes) == Pattern(size));
  }
}

TEST(MapFileTest, TellsItsProgressAndGivesUpWhenTold) {
  const TempDirectory directory;
  directory.Write("file", Pattern(size_t{4} << 20));
  std::vector<double> shares;

  const auto gives_up = [&shares](const std::string&, double share) {
    shares.push_back(share);
    return shares.size() < 3;
  };

  EXPECT_EQ(MapFile(directory.path() + "/file", kFileBytesMax, gives_up).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(shares, (std::vector<double>{0.25, 0.5, 0.75}));
}

TEST(MapFileTest, NamesTheFileThatIsNotThere) {
  const absl::StatusOr<SharedBytes> bytes = MapFile("/nowhere/at-all");

  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(bytes.status().message()),
            "/nowhere/at-all: cannot be opened: No such file or directory");
}

// A read of a pipe would wait until somebody writes to it.
TEST(MapFileTest, RefusesAPipe) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);

  EXPECT_EQ(MessageOf(MapFile(path)), path + ": is no ordinary file");
}

TEST(MapFileTest, RefusesADirectory) {
  const TempDirectory directory;

  EXPECT_EQ(MessageOf(MapFile(directory.path())), directory.path() + ": is no ordinary file");
}

TEST(MapFileTest, AcceptsTheBoundAndRefusesOneByteMore) {
  const TempDirectory directory;
  directory.Write("file", Pattern(100));

  EXPECT_TRUE(MapFile(directory.path() + "/file", 100).ok());
  EXPECT_EQ(MessageOf(MapFile(directory.path() + "/file", 99)),
            directory.path() + "/file: has more than 99 bytes, the most accepted");
}

TEST(MapFileTest, KeepsTheBytesOfAFileThatIsReplaced) {
  const TempDirectory directory;
  directory.Write("file", Pattern(20'000));
  const absl::StatusOr<SharedBytes> bytes = MapFile(directory.path() + "/file");
  ASSERT_TRUE(bytes.ok()) << bytes.status();

  directory.Write("other", Bytes(10));
  std::filesystem::rename(directory.path() + "/other", directory.path() + "/file");

  EXPECT_TRUE(Copied(*bytes) == Pattern(20'000));
}

// The system has no bytes to give then, and sends SIGBUS.
TEST(MapFileDeathTest, AFileThatBecomesShorterEndsTheProgramWithItsName) {
  const TempDirectory directory;
  directory.Write("first", Pattern(20'000));
  directory.Write("second", Pattern(20'000));
  const auto read_what_is_cut = [&] {
    const absl::StatusOr<SharedBytes> first = MapFile(directory.path() + "/first");
    const absl::StatusOr<SharedBytes> second = MapFile(directory.path() + "/second");
    std::filesystem::resize_file(directory.path() + "/second", 10);
    std::_Exit(Copied(*first) == Copied(*second) ? 0 : 1);
  };

  EXPECT_EXIT(read_what_is_cut(), testing::ExitedWithCode(static_cast<int>(ExitCode::kIo)),
              "error: .*/second: it has become shorter, or cannot be read any more");
}

// A worker that ends with kTemporary is started again.
TEST(MapFileTest, TooFewAddressesAreALackOfMemory) {
  const TempDirectory directory;
  directory.Write("file", Bytes());
  std::filesystem::resize_file(directory.path() + "/file", size_t{60} << 20);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight = {.rlim_cur = pages * static_cast<uint64_t>(getpagesize()) + (30 << 20),
                        .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);

  const absl::StatusOr<SharedBytes> bytes = MapFile(directory.path() + "/file");

  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kResourceExhausted) << bytes.status();
}

TEST(MapFileTest, ReadsWhatCannotBeMapped) {
  const std::string path = "/sys/kernel/notes";  // Its file system maps no files.
  std::ifstream file(path, std::ios::binary);
  if (!file) GTEST_SKIP() << "there is no " << path;
  const Bytes expected(std::istreambuf_iterator<char>(file), {});
  const uint64_t before = MappedBytes();

  const absl::StatusOr<SharedBytes> bytes = MapFile(path);

  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(Copied(*bytes) == expected);
  EXPECT_EQ(MappedBytes(), before);
}

TEST(MapFileTest, CountsWhatIsMapped) {
  const TempDirectory directory;
  directory.Write("file", Pattern(20'000));
  const uint64_t before = MappedBytes();
  {
    const absl::StatusOr<SharedBytes> bytes = MapFile(directory.path() + "/file");
    EXPECT_EQ(MappedBytes(), before + 20'000);
  }
  EXPECT_EQ(MappedBytes(), before);
}

TEST(MapFileDeathTest, OtherBusErrorsDoWhatTheyDidBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // No file has been mapped there.
  const TempDirectory directory;
  directory.Write("file", Pattern(20'000));
  const auto be_sent_one = [&] {
    std::signal(SIGBUS, [](int) { std::_Exit(7); });
    const absl::StatusOr<SharedBytes> bytes = MapFile(directory.path() + "/file");
    (void)raise(SIGBUS);
  };

  EXPECT_EXIT(be_sent_one(), testing::ExitedWithCode(7), "");
}

TEST(MapOrUnpackTest, UnpacksWhatIsPacked) {
  const TempDirectory directory;
  directory.Write("plain", Pattern(5000));
  directory.Write("packed", Gzip(Pattern(5000)));

  for (const char* name : {"/plain", "/packed"}) {
    const absl::StatusOr<SharedBytes> bytes = MapOrUnpack(directory.path() + name, {});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_TRUE(Copied(*bytes) == Pattern(5000)) << name;
  }
}

}  // namespace
}  // namespace slipstream
