#include "common/model_file/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "common/model_file/weights_digest.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

/// An empty directory, and a model of two tensors.
class ModelFileTest : public testing::Test {
 protected:
  ModelFileTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()),
        path_(folder_ / "model.safetensors"),
        weights_(8) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    EXPECT_TRUE(layout_.Append("0.weight", {2, 3}).ok());
    EXPECT_TRUE(layout_.Append("0.bias", {2}).ok());
    std::iota(weights_.begin(), weights_.end(), 1.0f);
  }

  void Write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Writes the model with our own writer.
  void Save(const ModelMetadata& metadata = {}) const {
    ASSERT_TRUE(WriteModelFile(path_, layout_, metadata, weights_).ok());
  }

  /// Opens the file and reads it as `layout`.
  absl::Status Read(const TensorLayout& layout, std::vector<float>& weights) const {
    const absl::StatusOr<ModelFile> file = ModelFile::Open(path_);
    if (!file.ok()) return file.status();
    weights.resize(layout.parameters());
    return file->Read(layout, weights);
  }

  /// Returns the error from opening the file, without the path at its beginning.
  std::string OpenFailure() const {
    const absl::StatusOr<ModelFile> file = ModelFile::Open(path_);
    if (file.ok()) return "nothing";
    const std::string message(file.status().message());
    EXPECT_THAT(message, StartsWith(path_ + ": "));
    return message.substr(path_.size() + 2);
  }

  const fs::path folder_;
  const std::string path_;
  TensorLayout layout_;
  std::vector<float> weights_;
};

TEST_F(ModelFileTest, ReadsWhatItWrote) {
  Save({{"run", "demo"}, {kWeightsSha256, WeightsSha256(weights_)}});

  const absl::StatusOr<ModelFile> file = ModelFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<float> read(8);
  ASSERT_TRUE(file->Read(layout_, read).ok());

  EXPECT_EQ(read, weights_);
  EXPECT_EQ(file->layout(), layout_);
  EXPECT_EQ(file->metadata().at("run"), "demo");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(ModelFileTest, IsByteForByteWhatTheFormatSays) {
  Save();

  const std::string header = R"({"0.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                             R"("0.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}})";
  const std::string padding(128 - header.size(), ' ');
  EXPECT_EQ(Content(), std::string("\x80\0\0\0\0\0\0\0", 8) + header + padding +
                           std::string(reinterpret_cast<const char*>(weights_.data()), 32));
}

TEST_F(ModelFileTest, LaysWhatIsBesideTheWeightsAtMultiplesOfItsValues) {
  const StoredTensor mask = {"mask", "BOOL", {3}, std::string("\1\0\1", 3)};
  const StoredTensor steps = {"steps", "I64", {}, std::string("\5\0\0\0\0\0\0\0", 8)};
  ASSERT_TRUE(WriteModelFile(path_, layout_, {}, weights_, {mask, steps}).ok());

  const std::string content = Content();
  EXPECT_THAT(content, HasSubstr(R"("steps":{"dtype":"I64","shape":[],"data_offsets":[0,8]})"));
  EXPECT_THAT(content,
              HasSubstr(R"("0.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]})"));
  EXPECT_THAT(content, HasSubstr(R"("mask":{"dtype":"BOOL","shape":[3],"data_offsets":[40,43]})"));
  EXPECT_EQ(content.substr(content.size() - 43, 8), steps.bytes);
  EXPECT_EQ(content.substr(content.size() - 3), mask.bytes);
}

TEST_F(ModelFileTest, FindsTensorsByNameWhateverTheirOrder) {
  Save();
  TensorLayout other;
  ASSERT_TRUE(other.Append("0.bias", {2}).ok());
  ASSERT_TRUE(other.Append("0.weight", {2, 3}).ok());

  std::vector<float> read;
  ASSERT_TRUE(Read(other, read).ok());

  EXPECT_EQ(read, (std::vector<float>{7, 8, 1, 2, 3, 4, 5, 6}));
}

TEST_F(ModelFileTest, OfAnotherModelNamesTheFirstDifferenceWithBothShapes) {
  Save();
  TensorLayout wider;
  ASSERT_TRUE(wider.Append("0.weight", {3, 3}).ok());
  TensorLayout longer = layout_;
  ASSERT_TRUE(longer.Append("1.weight", {4}).ok());
  TensorLayout shorter;
  ASSERT_TRUE(shorter.Append("0.weight", {2, 3}).ok());
  std::vector<float> read;

  EXPECT_EQ(Read(wider, read),
            absl::InvalidArgumentError(path_ +
                                       ": tensor \"0.weight\" is [2, 3], and [3, 3] in the model"));
  EXPECT_EQ(Read(longer, read),
            absl::InvalidArgumentError(path_ +
                                       ": has no tensor \"1.weight\", which is [4] in the model"));
  EXPECT_EQ(Read(shorter, read),
            absl::InvalidArgumentError(path_ + ": tensor \"0.bias\", [2], is not in the model"));
}

TEST_F(ModelFileTest, NoticesThatAValueChanged) {
  Save({{kWeightsSha256, WeightsSha256(weights_)}});
  std::string bytes = Content();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Write(bytes);

  std::vector<float> read;
  const absl::Status status = Read(layout_, read);

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("damaged"));
}

TEST_F(ModelFileTest, CutShortAnywhereIsRefused) {
  Save();
  const std::string bytes = Content();
  for (size_t length = 0; length < bytes.size(); ++length) {
    SCOPED_TRACE(testing::Message() << length << " bytes");
    Write(bytes.substr(0, length));

    EXPECT_THAT(OpenFailure(), HasSubstr("truncated"));
  }
}

TEST_F(ModelFileTest, WithMoreBytesThanTensorsIsRefused) {
  Save();
  Write(Content() + "x");

  EXPECT_EQ(OpenFailure(), "1 bytes follow the data of the last tensor");
}

TEST_F(ModelFileTest, WithALengthThatCannotBeIsRefused) {
  Write(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  EXPECT_EQ(
      OpenFailure(),
      "is no model file: those of safetensors begin with the length of their header, and this "
      "one begins with the bytes ff ff ff ff ff ff ff ff");

  Write("version: 1\nname: demo\n");
  EXPECT_THAT(OpenFailure(), HasSubstr("begins with the text \"version:\""));

  Write(std::string("\x09\0\0\0\0\0\0\0{}", 10));
  EXPECT_EQ(OpenFailure(), "truncated: a header of 9 bytes, and the file has 2 for it");
}

TEST_F(ModelFileTest, ThatIsMissingOrNoPlainFileIsNamed) {
  EXPECT_EQ(OpenFailure(), "cannot be opened: No such file or directory");
  fs::create_directory(path_);
  EXPECT_EQ(OpenFailure(), "is no plain file");
}

TEST_F(ModelFileTest, ThatCannotBeWrittenLeavesTheOneBefore) {
  const absl::Status status =
      WriteModelFile(folder_ / "none" / "model.safetensors", layout_, {}, weights_);

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("none/model.safetensors"));
}

}  // namespace
}  // namespace slipstream
