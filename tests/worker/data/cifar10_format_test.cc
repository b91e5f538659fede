#include "worker/data/cifar10_format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/example_values.h"
#include "tests/worker/data/gzip.h"
#include "tests/worker/data/temp_directory.h"

namespace slipstream {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr size_t kRecords = 4;
constexpr size_t kRecordBytes = 3073;

/// Returns records whose labels and pixels identify file and record.
Bytes File(uint8_t file) {
  Bytes bytes;
  for (uint8_t record = 0; record < kRecords; ++record) {
    bytes.push_back(static_cast<uint8_t>((file + record) % 10));
    for (uint8_t channel = 0; channel < 3; ++channel) {
      bytes.insert(bytes.end(), 1024, static_cast<uint8_t>(file * 40 + record * 4 + channel));
    }
  }
  return bytes;
}

/// Six correct files of four records. Each test breaks them in one place.
class Cifar10FormatTest : public testing::Test {
 protected:
  Cifar10FormatTest() {
    for (uint8_t file = 1; file <= 5; ++file) {
      directory_.Write("data_batch_" + std::to_string(file) + ".bin", File(file));
    }
    directory_.Write("test_batch.bin", File(0));
  }

  absl::StatusOr<RawSplits> Read() const { return ReadCifar10(directory_.path(), kRecords); }

  TempDirectory directory_;
};

TEST_F(Cifar10FormatTest, JoinsTheFilesInOrder) {
  const absl::StatusOr<RawSplits> splits = Read();

  ASSERT_TRUE(splits.ok()) << splits.status();
  const ExampleShape shape = {.channels = 3, .height = 32, .width = 32};
  EXPECT_EQ(splits->train.shape, shape);
  EXPECT_EQ(splits->test.shape, shape);
  EXPECT_EQ(splits->train.labels,
            (Bytes{1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7, 5, 6, 7, 8}));
  EXPECT_EQ(splits->test.labels, (Bytes{0, 1, 2, 3}));
  ASSERT_EQ(splits->train.pixels.size(), 5 * kRecords * 3072);
  EXPECT_EQ(BytesOf(splits->train.pixels)[(2 * kRecords + 1) * 3072 + 2048], 3 * 40 + 1 * 4 + 2);
}

TEST_F(Cifar10FormatTest, UnpacksAFileThatIsPacked) {
  directory_.Write("test_batch.bin", Gzip(File(0)));

  ASSERT_TRUE(Read().ok()) << Read().status();
  EXPECT_EQ(Read()->test.labels, (Bytes{0, 1, 2, 3}));
}

TEST_F(Cifar10FormatTest, IsGivenUpWhenTold) {
  const auto gives_up = [](const std::string& path, double) {
    return !path.ends_with("test_batch.bin");
  };

  EXPECT_EQ(ReadCifar10(directory_.path(), kRecords, gives_up).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(Cifar10FormatTest, NamesEachMissingFile) {
  for (const char* name : {"test_batch.bin", "data_batch_5.bin", "data_batch_1.bin"}) {
    directory_.Remove(name);

    const absl::Status status = Read().status();

    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(std::string(status.message()),
              directory_.path() + "/" + name + ": cannot be opened: No such file or directory");
  }
}

TEST_F(Cifar10FormatTest, NoticesTruncationAlsoBetweenRecords) {
  for (const size_t size : {size_t{0}, size_t{1}, kRecordBytes - 1, kRecordBytes, 3 * kRecordBytes,
                            4 * kRecordBytes - 1}) {
    Bytes bytes = File(2);
    bytes.resize(size);
    directory_.Write("data_batch_2.bin", bytes);

    const absl::Status status = Read().status();

    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(std::string(status.message()),
              directory_.path() + "/data_batch_2.bin: truncated: " + std::to_string(size) +
                  " bytes, expected 12292 (4 records of 3073)");
  }
}

TEST_F(Cifar10FormatTest, RefusesAFileThatIsTooLong) {
  Bytes bytes = File(0);
  bytes.push_back(0);
  directory_.Write("test_batch.bin", bytes);

  EXPECT_EQ(std::string(Read().status().message()),
            directory_.path() +
                "/test_batch.bin: too long: 12293 bytes, expected 12292 (4 records of 3073)");
}

TEST_F(Cifar10FormatTest, RefusesALabelOutOfRange) {
  Bytes bytes = File(3);
  bytes[2 * kRecordBytes] = 10;
  directory_.Write("data_batch_3.bin", bytes);

  const absl::Status status = Read().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::string(status.message()),
            directory_.path() + "/data_batch_3.bin: label 10 of record 2, expected 0 to 9");
}

TEST_F(Cifar10FormatTest, ExpectsThePublishedNumberOfRecords) {
  EXPECT_EQ(std::string(ReadCifar10(directory_.path()).status().message()),
            directory_.path() +
                "/data_batch_1.bin: truncated: 12292 bytes, expected 30730000 (10000 records of "
                "3073)");
}

}  // namespace
}  // namespace slipstream
