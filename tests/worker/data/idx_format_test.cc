#include "worker/data/idx_format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/example_values.h"
#include "tests/worker/data/gzip.h"
#include "tests/worker/data/temp_directory.h"

namespace slipstream {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes IdxFile(uint32_t magic, std::vector<uint32_t> dimensions, size_t values) {
  dimensions.insert(dimensions.begin(), magic);
  Bytes bytes;
  for (const uint32_t word : dimensions) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<uint8_t>(word >> shift));
  }
  for (size_t i = 0; i < values; ++i) bytes.push_back(static_cast<uint8_t>(i % 10));
  return bytes;
}

Bytes Images(uint32_t count, uint32_t height = 2, uint32_t width = 3) {
  return IdxFile(0x803, {count, height, width}, size_t{count} * height * width);
}

Bytes Labels(uint32_t count) { return IdxFile(0x801, {count}, count); }

constexpr char kTrainImages[] = "train-images-idx3-ubyte";
constexpr char kTrainLabels[] = "train-labels-idx1-ubyte";
constexpr char kTestImages[] = "t10k-images-idx3-ubyte";
constexpr char kTestLabels[] = "t10k-labels-idx1-ubyte";

/// Returns the other name in use: t10k-images.idx3-ubyte.
std::string Dotted(std::string name) {
  name[name.find("-idx")] = '.';
  return name;
}

/// A correct set of 12 and 7 images of 2×3 pixels. Each test breaks it in one place.
class IdxFormatTest : public testing::Test {
 protected:
  IdxFormatTest() {
    directory_.Write(kTrainImages, Images(12));
    directory_.Write(kTrainLabels, Labels(12));
    directory_.Write(kTestImages, Images(7));
    directory_.Write(kTestLabels, Labels(7));
  }

  /// Returns the error from reading the set, without the directory's name.
  std::string Error(absl::StatusCode code = absl::StatusCode::kDataLoss) const {
    const absl::Status status = ReadIdx(directory_.path()).status();
    EXPECT_EQ(status.code(), code) << status;
    const std::string message(status.message());
    const std::string prefix = directory_.path() + "/";
    EXPECT_EQ(message.substr(0, prefix.size()), prefix);
    return message.substr(std::min(prefix.size(), message.size()));
  }

  TempDirectory directory_;
};

TEST_F(IdxFormatTest, IsGivenUpWhenToldPlainOrPacked) {
  const auto gives_up = [](const std::string&, double) { return false; };
  EXPECT_EQ(ReadIdx(directory_.path(), gives_up).status().code(), absl::StatusCode::kCancelled);

  directory_.Remove(kTrainImages);
  directory_.Write(std::string(kTrainImages) + ".gz", Gzip(Images(12)));
  int looks = 0;
  const auto gives_up_unpacking = [&looks](const std::string&, double) { return ++looks < 2; };
  EXPECT_EQ(ReadIdx(directory_.path(), gives_up_unpacking).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(IdxFormatTest, GivesImagesAndLabelsOfBothSplits) {
  const absl::StatusOr<RawSplits> splits = ReadIdx(directory_.path());

  ASSERT_TRUE(splits.ok()) << splits.status();
  const ExampleShape shape = {.channels = 1, .height = 2, .width = 3};
  EXPECT_EQ(splits->train.shape, shape);
  EXPECT_EQ(splits->test.shape, shape);
  EXPECT_EQ(splits->train.labels, (Bytes{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1}));
  EXPECT_EQ(splits->test.labels, (Bytes{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(splits->train.pixels.size(), 12u * 6);
  EXPECT_EQ(BytesOf(splits->train.pixels)[13], 3);
}

TEST_F(IdxFormatTest, ReadsPackedAndPlainFilesAlike) {
  const absl::StatusOr<RawSplits> plain = ReadIdx(directory_.path());
  ASSERT_TRUE(plain.ok()) << plain.status();
  directory_.Remove(kTrainImages);
  directory_.Remove(kTestLabels);
  directory_.Write(std::string(kTrainImages) + ".gz", Gzip(Images(12)));
  directory_.Write(std::string(kTestLabels) + ".gz", Gzip(Labels(7)));

  const absl::StatusOr<RawSplits> mixed = ReadIdx(directory_.path());

  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(BytesOf(mixed->train.pixels), BytesOf(plain->train.pixels));
  EXPECT_EQ(mixed->test.labels, plain->test.labels);
}

TEST_F(IdxFormatTest, TellsAPackedFileByItsBytes) {
  directory_.Write(kTrainImages, Gzip(Images(12)));

  const absl::StatusOr<RawSplits> splits = ReadIdx(directory_.path());

  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->train.pixels.size(), 12u * 6);
}

TEST_F(IdxFormatTest, ReadsTheNamesWithADotBesideFoldersOfTheOther) {
  for (const char* name : {kTestLabels, kTestImages, kTrainLabels, kTrainImages}) {
    std::filesystem::rename(directory_.path() + "/" + name, directory_.path() + "/" + Dotted(name));
    std::filesystem::create_directory(directory_.path() + "/" + name);
  }
  directory_.Remove(Dotted(kTestImages));
  directory_.Write(Dotted(kTestImages) + ".gz", Gzip(Images(7)));

  const absl::StatusOr<RawSplits> splits = ReadIdx(directory_.path());

  ASSERT_TRUE(splits.ok()) << splits.status();
  EXPECT_EQ(splits->test.labels.size(), 7u);
}

TEST_F(IdxFormatTest, PrefersThePlainFile) {
  directory_.Write(std::string(kTrainImages) + ".gz", Bytes{1, 2, 3});

  EXPECT_TRUE(ReadIdx(directory_.path()).ok());
}

TEST_F(IdxFormatTest, NamesEachMissingFile) {
  for (const char* name : {kTestLabels, kTestImages, kTrainLabels, kTrainImages}) {
    directory_.Remove(name);
    EXPECT_EQ(
        Error(absl::StatusCode::kNotFound),
        std::string(name) + ": no such file, neither plain nor as .gz, nor as " + Dotted(name));
  }
}

TEST_F(IdxFormatTest, NamesADamagedPackedFileByItsOwnName) {
  Bytes packed = Gzip(Images(12));
  packed[packed.size() - 5] ^= 0x80;
  directory_.Remove(kTrainImages);
  directory_.Write(std::string(kTrainImages) + ".gz", packed);

  EXPECT_EQ(Error(),
            "train-images-idx3-ubyte.gz: the gzip CRC of the unpacked bytes does not match the one "
            "in the file");
}

TEST_F(IdxFormatTest, NoticesEveryTruncation) {
  const Bytes images = Images(12);
  for (size_t size = 0; size < images.size(); ++size) {
    SCOPED_TRACE(testing::Message() << size << " of " << images.size() << " bytes");
    directory_.Write(kTrainImages, Bytes(images.begin(), images.begin() + ptrdiff_t(size)));
    const std::string expected =
        size < 16 ? ": truncated: " + std::to_string(size) + " bytes, expected a header of 16"
                  : ": truncated: " + std::to_string(size - 16) +
                        " bytes after the header, expected 72 as its header announces";
    EXPECT_EQ(Error(), kTrainImages + expected);
  }
}

TEST_F(IdxFormatTest, RefusesBytesAfterTheLastValue) {
  Bytes labels = Labels(7);
  labels.push_back(0);
  directory_.Write(kTestLabels, labels);

  EXPECT_EQ(Error(),
            "t10k-labels-idx1-ubyte: too long: 8 bytes after the header, expected 7 as its header "
            "announces");
}

TEST_F(IdxFormatTest, RefusesAWrongMagicNumber) {
  directory_.Write(kTrainImages, Labels(12));
  EXPECT_EQ(Error(), "train-images-idx3-ubyte: magic number 0x00000801, expected 0x00000803");
}

TEST_F(IdxFormatTest, RefusesAnEmptySet) {
  directory_.Write(kTestImages, Images(0));

  EXPECT_EQ(Error(), "t10k-images-idx3-ubyte: announces 0 examples, expected 1 to 10000000");
}

TEST_F(IdxFormatTest, RefusesAnnouncedSizesBeyondTheBounds) {
  directory_.Write(kTrainImages, IdxFile(0x803, {0xffffffff, 0xffffffff, 0xffffffff}, 0));
  EXPECT_EQ(Error(),
            "train-images-idx3-ubyte: announces 4294967295 examples, expected 1 to 10000000");

  directory_.Write(kTrainImages, IdxFile(0x803, {12, 1025, 3}, 0));
  EXPECT_EQ(Error(),
            "train-images-idx3-ubyte: announces images 1025 pixels wide or high, expected 1 to "
            "1024");

  directory_.Write(kTrainImages, IdxFile(0x803, {12, 2, 0}, 0));
  EXPECT_EQ(Error(),
            "train-images-idx3-ubyte: announces images 0 pixels wide or high, expected 1 to 1024");
}

TEST_F(IdxFormatTest, RefusesCountsThatDifferBetweenImagesAndLabels) {
  directory_.Write(kTrainLabels, Labels(11));

  EXPECT_EQ(Error(), "train-labels-idx1-ubyte: 11 labels, expected 12, one for each image of " +
                         directory_.path() + "/train-images-idx3-ubyte");
}

TEST_F(IdxFormatTest, RefusesALabelOutOfRange) {
  Bytes labels = Labels(7);
  labels[8 + 5] = 10;
  directory_.Write(kTestLabels, labels);

  EXPECT_EQ(Error(), "t10k-labels-idx1-ubyte: label 10 of example 5, expected 0 to 9");
}

TEST_F(IdxFormatTest, RefusesImagesOfAnotherSizeInTheTestSet) {
  directory_.Write(kTestImages, Images(7, 3, 2));

  EXPECT_EQ(Error(),
            "t10k-images-idx3-ubyte: images of 3×2 pixels, expected 2×3 as in the training set");
}

}  // namespace
}  // namespace slipstream
