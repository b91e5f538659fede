#include "worker/training/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/model_file/model_file.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

/// The state of worker 3, which has two arrays, in an empty directory.
class StateFileTest : public testing::Test {
 protected:
  StateFileTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()),
        path_(folder_ / "worker-3.safetensors") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    settings_.worker.algorithm = AlgorithmKind::kEasgd;
    settings_.wire.push_codec = Encoding::kTopK;
    layout_ = LayoutOf({{"weights", 4}, {"optimizer.0", 2}});
    TensorLayout model;
    EXPECT_TRUE(model.Append("w", {64}).ok());
    map_ = *ShardMap::Cut(model, 2);
  }

  static TensorLayout LayoutOf(const std::vector<std::pair<std::string, uint64_t>>& arrays) {
    TensorLayout layout;
    for (const auto& [name, values] : arrays) EXPECT_TRUE(layout.Append(name, {values}).ok());
    return layout;
  }

  StateOwner Owner() const { return OwnerOf(settings_, identity_, map_); }

  absl::Status Write() const { return WriteStateFile(path_, Owner(), moment_, layout_, values_); }

  absl::StatusOr<StateMoment> Read() {
    read_.assign(layout_.parameters(), 0);
    return ReadStateFile(path_, Owner(), layout_, read_);
  }

  std::string Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  void WriteBytes(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
  }

  const fs::path folder_;
  const std::string path_;
  RunSpec settings_;
  Identity identity_ = {.run = 0xc0ffee, .worker = WorkerId{3}, .incarnation = Incarnation{5}};
  ShardMap map_;
  TensorLayout layout_;
  const StateMoment moment_ = {.steps = 123'456'789'012,
                               .incarnation = Incarnation{5},
                               .pushes = {40, 41},
                               .time = "2026-11-27T19:31:05+00:00",
                               .scalars = {0.1 + 0.2, 1e-300}};
  const std::vector<float> values_ = {1.0f, -2.0f, 3e-45f, 4.0f, 5.0f, -0.0f};
  std::vector<float> read_;
};

TEST_F(StateFileTest, AStateReadsBackAsItWas) {
  ASSERT_TRUE(Write().ok());

  const absl::StatusOr<StateMoment> moment = Read();

  ASSERT_TRUE(moment.ok()) << moment.status();
  EXPECT_EQ(*moment, moment_);
  EXPECT_EQ(read_, values_);
}

TEST_F(StateFileTest, OtherProgramsFindTheArraysByTheirNames) {
  ASSERT_TRUE(Write().ok());

  const absl::StatusOr<ModelFile> file = ModelFile::Open(path_);

  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->layout(), layout_);
  EXPECT_EQ(file->metadata().at("run"), "0000000000c0ffee");
  EXPECT_EQ(file->metadata().at("steps"), "123456789012");
}

TEST_F(StateFileTest, TheStateOfAnotherIsRefusedByTheNameOfTheDifference) {
  ASSERT_TRUE(Write().ok());
  const auto refusal = [this] {
    const absl::Status status = Read().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };

  identity_.run = 7;
  EXPECT_EQ(refusal(), path_ +
                           ": it is the state of run 0000000000c0ffee, and this is run "
                           "0000000000000007");
  identity_.run = 0xc0ffee;
  identity_.worker = WorkerId{4};
  EXPECT_THAT(refusal(), HasSubstr("it is the state of worker 3, and this is worker 4"));
  identity_.worker = WorkerId{3};
  settings_.wire.push_codec = Encoding::kInt8;
  EXPECT_THAT(refusal(), HasSubstr("push_codec topk, and this is push_codec int8"));
  settings_.wire.push_codec = Encoding::kTopK;
  settings_.worker.algorithm = AlgorithmKind::kEamsgd;
  EXPECT_THAT(refusal(), HasSubstr("algorithm easgd, and this is algorithm eamsgd"));
  settings_.worker.algorithm = AlgorithmKind::kEasgd;
  settings_.optimizer.kind = RuleKind::kNesterov;
  EXPECT_THAT(refusal(), HasSubstr("optimizer sgd, and this is optimizer nesterov"));
  settings_.optimizer.kind = RuleKind::kSgd;
  TensorLayout other;
  ASSERT_TRUE(other.Append("v", {64}).ok());
  map_ = *ShardMap::Cut(other, 2);
  EXPECT_THAT(refusal(), HasSubstr("it is the state of shard_map "));
}

TEST_F(StateFileTest, OtherArraysAreRefusedByTheirNames) {
  ASSERT_TRUE(Write().ok());

  layout_ = LayoutOf({{"weights", 4}, {"error.slot-0.shard-0", 2}});
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("error.slot-0.shard-0"));
  layout_ = LayoutOf({{"weights", 4}, {"optimizer.0", 3}});
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("optimizer.0"));
}

TEST_F(StateFileTest, AModelIsNoState) {
  ASSERT_TRUE(WriteModelFile(path_, layout_, {}, values_).ok());

  const absl::Status status = Read().status();

  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), path_ + ": it is not the state of a worker");
}

TEST_F(StateFileTest, WithoutAFileThereIsNoState) {
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StateFileTest, NoTruncatedStateIsTaken) {
  ASSERT_TRUE(Write().ok());
  const std::string whole = Bytes();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    WriteBytes(whole.substr(0, bytes));
    ASSERT_FALSE(Read().ok()) << bytes;
  }
}

TEST_F(StateFileTest, NoStateWithAWrongBitIsTakenForAnother) {
  ASSERT_TRUE(Write().ok());
  const std::string whole = Bytes();
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    WriteBytes(damaged);
    const absl::StatusOr<StateMoment> moment = Read();
    // A bit of the JSON between its values may change nothing that is read.
    if (!moment.ok()) continue;
    ASSERT_EQ(*moment, moment_) << "bit " << bit;
    ASSERT_EQ(read_, values_) << "bit " << bit;
  }
}

}  // namespace
}  // namespace slipstream
