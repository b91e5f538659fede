#include "server/storage/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "common/model_file/model_file.h"
#include "server/storage/posix_disk.h"
#include "tests/server/storage/checkpoint_fixture.h"
#include "tests/support/simulated_disk.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(CheckpointFolderTest, OtherProgramsCanReadTheWeights) {
  const std::string directory =
      testing::TempDir() + "/checkpoint_folder_test-" + std::to_string(getpid());
  PosixDisk disk;
  ASSERT_TRUE(disk.MakeDirectories(directory).ok());
  const Content content = Content::Of(1);
  const CheckpointArray arrays[] = {{"weights", content.weights}, {"state0", content.momentum}};
  const TensorLayout part = PartOf(WholeModel(), kRange);
  ASSERT_TRUE(WriteCheckpoint(disk, directory,
                              {.run = kRun, .shard = kShard, .range = kRange, .saved = Saved(2, 7)},
                              part, content.state, arrays)
                  .ok());

  const absl::StatusOr<ModelFile> file = ModelFile::Open(directory + "/" + kWeightsFile);

  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->layout(), part);
  EXPECT_EQ(file->layout().tensors()[0].name, "fc1.weight[2000:4000 of 100x40]");
  const ModelMetadata expected = {{"written_by", "slipstream 0.1.0"},
                                  {"run", "00000000000000ab"},
                                  {"shard", "1"},
                                  {"generation", "2"},
                                  {"version", "7"},
                                  {"range", "2000:7000"}};
  EXPECT_EQ(file->metadata(), expected);
  std::vector<float> weights(kRange.size());
  ASSERT_TRUE(file->Read(part, weights).ok());
  EXPECT_EQ(weights, content.weights);
  std::filesystem::remove_all(directory);
}

/// A checkpoint whose files have several blocks.
class LargeCheckpointTest : public testing::Test {
 protected:
  LargeCheckpointTest() {
    std::iota(values_.begin(), values_.end(), 0.0f);
    EXPECT_TRUE(layout_.Append("a", {values_.size()}).ok());
    const std::span<const float> all = values_;
    const CheckpointArray arrays[] = {
        {"weights", all}, {"state0", all.first(300'000)}, {"state1", all.last(250'000)}};
    EXPECT_TRUE(disk_.MakeDirectories("/c").ok());
    const absl::StatusOr<uint64_t> bytes = WriteCheckpoint(
        disk_, "/c", {.range = {0, values_.size()}}, layout_, std::string(2'000'000, 's'), arrays);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
  }

  SimulatedDisk disk_;
  TensorLayout layout_;
  std::vector<float> values_ = std::vector<float>(700'000);
};

TEST_F(LargeCheckpointTest, ArraysThatEndWithinBlocksComeBack) {
  std::vector<float> weights(values_.size());
  std::vector<float> first(300'000);
  std::vector<float> second(250'000);
  const CheckpointFolder folder = CheckpointFolder::Open(disk_, "/c").value();

  const LoadedArray arrays[] = {{"state1", second}, {"weights", weights}, {"state0", first}};
  ASSERT_TRUE(folder.ReadArrays(arrays).ok());

  EXPECT_EQ(weights, values_);
  EXPECT_EQ(first, std::vector<float>(values_.begin(), values_.begin() + 300'000));
  EXPECT_EQ(second, std::vector<float>(values_.end() - 250'000, values_.end()));
  EXPECT_EQ(folder.ReadState().value(), std::string(2'000'000, 's'));
  EXPECT_THAT(folder.Verify(), IsEmpty());
}

TEST_F(LargeCheckpointTest, NamesEveryBlockThatIsDamaged) {
  disk_.BytesOf("/c/weights.safetensors")[1'500'000] ^= 1;
  disk_.BytesOf("/c/weights.safetensors").back() ^= 1;
  disk_.BytesOf("/c/arrays.bin")[0] ^= 1;
  disk_.BytesOf("/c/state.bin").resize(1'999'999);
  const uint64_t weights_end = disk_.BytesOf("/c/weights.safetensors").size();

  std::vector<std::string> damage;
  const CheckpointFolder folder = CheckpointFolder::Open(disk_, "/c").value();
  for (const absl::Status& one : folder.Verify()) damage.emplace_back(one.message());

  EXPECT_EQ(
      damage,
      (std::vector<std::string>{
          "/c/weights.safetensors: damaged: the checksum of bytes 1048576 to 2097152 is wrong",
          "/c/weights.safetensors: damaged: the checksum of bytes 2097152 to " +
              std::to_string(weights_end) + " is wrong",
          "/c/arrays.bin: damaged: the checksum of bytes 0 to 1048576 is wrong",
          "/c/state.bin: truncated: it ends at byte 1999999, and had 2000000 bytes"}));
}

TEST_F(LargeCheckpointTest, NamesAFileThatIsMissing) {
  ASSERT_TRUE(disk_.Remove("/c/arrays.bin").ok());
  const CheckpointFolder folder = CheckpointFolder::Open(disk_, "/c").value();
  EXPECT_EQ(folder.CheckSizes().message(), "/c/arrays.bin: is missing");

  ASSERT_TRUE(disk_.Remove("/c/MANIFEST").ok());
  EXPECT_THAT(std::string(CheckpointFolder::Open(disk_, "/c").status().message()),
              HasSubstr("/c/MANIFEST: is missing"));
}

}  // namespace
}  // namespace slipstream
