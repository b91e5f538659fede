#include "worker/data/npy_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include "tests/worker/data/npy_array.h"
#include "tests/worker/data/temp_directory.h"

namespace slipstream {
namespace {

constexpr auto kClasses = ModelSpec::Loss::kCrossEntropy;
constexpr auto kTargets = ModelSpec::Loss::kMse;

/// Three examples of two values for training, and one for the test, in classes 0 to 2.
class NpyFormatTest : public testing::Test {
 protected:
  NpyFormatTest() {
    directory_.Write("X_train.npy", NpyArray<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6}));
    directory_.Write("y_train.npy", NpyArray<int64_t>("<i8", "(3,)", {0, 1, 2}));
    directory_.Write("X_test.npy", NpyArray<float>("<f4", "(1, 2)", {7, 8}));
    directory_.Write("y_test.npy", NpyArray<int64_t>("<i8", "(1,)", {1}));
  }

  DataSplits Read(ModelSpec::Loss loss = kClasses) const {
    absl::StatusOr<DataSplits> splits = ReadNpy(directory_.path(), loss, {});
    EXPECT_TRUE(splits.ok()) << splits.status();
    return splits.ok() ? *std::move(splits) : DataSplits{};
  }

  /// Returns the error from reading, without the directory's name.
  std::string Error(ModelSpec::Loss loss = kClasses) const {
    const absl::Status status = ReadNpy(directory_.path(), loss, {}).status();
    EXPECT_FALSE(status.ok());
    std::string message(status.message());
    EXPECT_EQ(message.rfind(directory_.path() + "/", 0), 0u) << message;
    return message.substr(directory_.path().size() + 1);
  }

  template <typename Number>
  std::string ErrorWith(const std::string& name, const std::string& descr, const std::string& shape,
                        const std::vector<Number>& values, ModelSpec::Loss loss = kClasses) const {
    directory_.Write(name, NpyArray<Number>(descr, shape, values));
    return Error(loss);
  }

  const TempDirectory directory_;
};

TEST_F(NpyFormatTest, ReadsExamplesAndClasses) {
  const DataSplits splits = Read();

  EXPECT_EQ(splits.train.shape, (ExampleShape{.channels = 2}));
  EXPECT_EQ(splits.train.examples.All(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(splits.train.labels, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(splits.train.is_labelled());
  EXPECT_EQ(splits.train.outputs, 3u);
  EXPECT_EQ(splits.test.examples.All(), (std::vector<float>{7, 8}));
  EXPECT_EQ(splits.test.outputs, 3u);
}

TEST_F(NpyFormatTest, RefusesByItsHeaderWhatMemoryCannotHold) {
  constexpr uint64_t kCount = 4096;
  constexpr uint64_t kBytes = kCount << 28;  // A tebibyte, in a sparse file.
  const std::string header = NpyArray<uint8_t>("|u1", "(4096, 268435456)", {});
  directory_.Write("X_train.npy", header);
  directory_.Write("y_train.npy",
                   NpyArray<uint8_t>("|u1", "(4096,)", std::vector<uint8_t>(kCount)));
  std::error_code error;
  std::filesystem::resize_file(directory_.path() + "/X_train.npy", header.size() + kBytes, error);
  if (error) GTEST_SKIP() << "no file of so many bytes: " << error.message();

  const absl::Status status = ReadNpy(directory_.path(), kClasses, {}).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("X_train.npy: no memory for the data: 1099511627904 bytes"),
            absl::string_view::npos)
      << status;
}

TEST_F(NpyFormatTest, ReadsTargetsOfOneValueOrSeveral) {
  EXPECT_EQ(Read(kTargets).train.targets, (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(Read(kTargets).train.outputs, 1u);

  directory_.Write("y_train.npy", NpyArray<double>("<f8", "(3, 2)", {1, 2, 3, 4, -5, 0.5}));
  directory_.Write("y_test.npy", NpyArray<float>("<f4", "(1, 2)", {7, 8}));
  const DataSplits splits = Read(kTargets);

  EXPECT_EQ(splits.train.targets, (std::vector<float>{1, 2, 3, 4, -5, 0.5}));
  EXPECT_EQ(splits.train.outputs, 2u);
  EXPECT_EQ(splits.train.count(), 3u);
  EXPECT_FALSE(splits.train.is_labelled());
}

TEST_F(NpyFormatTest, ReadsImages) {
  directory_.Write("X_train.npy", NpyArray<uint8_t>("|u1", "(3, 1, 2)", {0, 1, 2, 3, 254, 255}));
  directory_.Write("X_test.npy", NpyArray<uint8_t>("|u1", "(1, 1, 2)", {7, 8}));
  EXPECT_EQ(Read().train.shape, (ExampleShape{1, 1, 2}));
  EXPECT_EQ(Read().train.examples.All(), (std::vector<float>{0, 1, 2, 3, 254, 255}));

  directory_.Write("X_train.npy", NpyArray<int16_t>("<i2", "(3, 2, 1, 1)", {0, 1, 2, 3, -4, 5}));
  directory_.Write("X_test.npy", NpyArray<int16_t>("<i2", "(1, 2, 1, 1)", {7, 8}));
  EXPECT_EQ(Read().train.shape, (ExampleShape{2, 1, 1}));
  EXPECT_EQ(Read().train.examples.All()[4], -4.0f);
}

TEST_F(NpyFormatTest, ReadsEveryTypeOfNumber) {
  const auto expect_read = [&](const std::string& file) {
    directory_.Write("y_train.npy", file);
    EXPECT_EQ(Read().train.labels, (std::vector<uint32_t>{0, 1, 2})) << file;
  };

  expect_read(NpyArray<double>("<f8", "(3,)", {0, 1, 2}));
  expect_read(NpyArray<int8_t>("|i1", "(3,)", {0, 1, 2}));
  expect_read(NpyArray<int32_t>("<i4", "(3,)", {0, 1, 2}));
  expect_read(NpyArray<uint16_t>("<u2", "(3,)", {0, 1, 2}));
  expect_read(NpyArray<uint32_t>("<u4", "(3,)", {0, 1, 2}));
  expect_read(NpyArray<uint64_t>("<u8", "(3, 1)", {0, 1, 2}));
}

TEST_F(NpyFormatTest, ReadsFortranOrderIntoPlace) {
  // Three images of two rows and one column in each of two channels, numbered in C order.
  directory_.Write("X_train.npy",
                   NpyArray<float>("<f4", "(3, 2, 2, 1)", {0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11},
                                   /*is_fortran=*/true));
  directory_.Write("X_test.npy", NpyArray<float>("<f4", "(1, 2, 2, 1)", {1, 2, 3, 4}));
  directory_.Write("y_train.npy", NpyArray<int64_t>("<i8", "(3,)", {0, 1, 2}, /*is_fortran=*/true));

  const DataSplits splits = Read();

  EXPECT_EQ(splits.train.examples.All(),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(splits.train.labels, (std::vector<uint32_t>{0, 1, 2}));
  directory_.Write("X_train.npy", NpyArray<float>("<f4", "(3, 2)", {0, 1, INFINITY, 3, 4, 5},
                                                  /*is_fortran=*/true));
  EXPECT_EQ(Error(), "X_train.npy: inf at [2, 0], expected a finite number that fp32 can hold");
}

TEST_F(NpyFormatTest, ReadsBigEndianValuesAndTruth) {
  directory_.Write("X_train.npy", NpyArray<uint16_t>(">u2", "(3, 2)", {0x100, 1, 0, 0, 0, 0xffff}));
  directory_.Write("y_train.npy", NpyArray<uint8_t>("|b1", "(3,)", {0, 1, 2}));

  const DataSplits splits = Read();

  EXPECT_EQ(splits.train.examples.All(), (std::vector<float>{1, 256, 0, 0, 0, 65535}));
  EXPECT_EQ(splits.train.labels, (std::vector<uint32_t>{0, 1, 1}));
}

TEST_F(NpyFormatTest, CountsClassesOverBothFiles) {
  directory_.Write("y_test.npy", NpyArray<int64_t>("<i8", "(1,)", {300}));

  EXPECT_EQ(Read().train.outputs, 301u);
}

TEST_F(NpyFormatTest, ReadsMoreThanOnePiece) {
  std::vector<float> values(300'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  directory_.Write("X_train.npy", NpyArray<float>("<f4", "(3, 100000)", values));
  directory_.Write("X_test.npy",
                   NpyArray<float>("<f4", "(1, 100000)", std::vector<float>(100'000)));
  std::vector<double> shares;

  const auto splits = ReadNpy(directory_.path(), kClasses, [&](const std::string& path, double s) {
    if (path.ends_with("X_train.npy")) shares.push_back(s);
    return true;
  });

  EXPECT_EQ(splits->train.examples.All(), values);
  EXPECT_GE(shares.size(), 3u);
  EXPECT_EQ(shares.back(), 1);
}

TEST_F(NpyFormatTest, GivesUpWhenTold) {
  const auto status =
      ReadNpy(directory_.path(), kClasses, [](const std::string&, double) { return false; });

  EXPECT_EQ(status.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(NpyFormatTest, RefusesLabelsThatAreNoClasses) {
  const std::string expected = ", expected a class: a whole number from 0 to 1048575";

  EXPECT_EQ(ErrorWith<int64_t>("y_train.npy", "<i8", "(3,)", {0, -1, 2}),
            "y_train.npy: -1 at [1]" + expected);
  EXPECT_EQ(ErrorWith<double>("y_train.npy", "<f8", "(3,)", {0, 1, 2.5}),
            "y_train.npy: 2.5 at [2]" + expected);
  EXPECT_EQ(ErrorWith<double>("y_train.npy", "<f8", "(3,)", {std::nan(""), 1, 2}),
            "y_train.npy: nan at [0]" + expected);
  EXPECT_EQ(ErrorWith<int64_t>("y_train.npy", "<i8", "(3,)", {0, 1, 1048576}),
            "y_train.npy: 1048576 at [2]" + expected);
}

TEST_F(NpyFormatTest, RefusesValuesThatAreNotFinite) {
  const std::string expected = ", expected a finite number that fp32 can hold";

  EXPECT_EQ(ErrorWith<float>("X_train.npy", "<f4", "(3, 2)",
                             {1, 2, 3, std::numeric_limits<float>::infinity(), 5, 6}),
            "X_train.npy: inf at [1, 1]" + expected);
  EXPECT_EQ(ErrorWith<double>("X_train.npy", "<f8", "(3, 2)", {1, 2, 3, 4, 1e300, 6}),
            "X_train.npy: 1e+300 at [2, 0]" + expected);
}

TEST_F(NpyFormatTest, RefusesShapesThatMakeNoExamples) {
  EXPECT_EQ(ErrorWith<float>("X_train.npy", "<f4", "(3,)", {1, 2, 3}),
            "X_train.npy: shape (3,), expected [N, features], [N, height, width] or [N, channels, "
            "height, width] with 1 to 268435456 values of an example");
  EXPECT_EQ(ErrorWith<float>("X_train.npy", "<f4", "(0, 2)", {}),
            "X_train.npy: shape (0, 2), expected 1 to 4294967295 examples");
  EXPECT_EQ(ErrorWith<float>("X_train.npy", "<f4", "()", {1}),
            "X_train.npy: shape (), expected 1 to 4294967295 examples");
}

TEST_F(NpyFormatTest, RefusesFilesThatDoNotBelongTogether) {
  EXPECT_EQ(ErrorWith<int64_t>("y_train.npy", "<i8", "(2,)", {0, 1}),
            "y_train.npy: 2 examples, but " + directory_.path() + "/X_train.npy has 3");
  EXPECT_EQ(ErrorWith<int64_t>("y_train.npy", "<i8", "(3, 2)", {0, 1, 2, 0, 1, 2}),
            "y_train.npy: shape (3, 2), expected [N], one class for each example");
  EXPECT_EQ(Error(kTargets), "y_test.npy: 1 targets of an example, expected 2 as in y_train.npy");
  directory_.Write("y_train.npy", NpyArray<int64_t>("<i8", "(3,)", {0, 1, 2}));
  EXPECT_EQ(ErrorWith<float>("X_test.npy", "<f4", "(1, 3)", {7, 8, 9}),
            "X_test.npy: examples of 3×1×1, expected 2×1×1 as in X_train.npy");
}

TEST_F(NpyFormatTest, RefusesFilesOfAnotherSizeThanTheyAnnounce) {
  EXPECT_EQ(ErrorWith<float>("X_train.npy", "<f4", "(3, 2)", {1, 2, 3, 4, 5}),
            "X_train.npy: truncated: 20 bytes after the header, expected 24 for the shape (3, 2)");
  EXPECT_EQ(ErrorWith<float>("X_train.npy", "<f4", "(3, 2)", {1, 2, 3, 4, 5, 6, 7}),
            "X_train.npy: too long: 28 bytes after the header, expected 24 for the shape (3, 2)");
  const std::string file = NpyArray<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6});
  directory_.Write("X_train.npy", file.substr(0, 50));
  EXPECT_EQ(Error(), "X_train.npy: truncated: a header of 40 bytes, expected 118");
}

// Wherever the file is cut off, the result is an error and not a crash.
TEST_F(NpyFormatTest, RefusesEveryTruncation) {
  const std::string file = NpyArray<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6});
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    directory_.Write("X_train.npy", file.substr(0, bytes));
    EXPECT_EQ(ReadNpy(directory_.path(), kClasses, {}).status().code(),
              absl::StatusCode::kDataLoss);
  }
}

TEST_F(NpyFormatTest, SaysWhichFileIsMissing) {
  directory_.Remove("y_test.npy");

  EXPECT_EQ(Error(), "y_test.npy: cannot be opened: No such file or directory");
}

}  // namespace
}  // namespace slipstream
