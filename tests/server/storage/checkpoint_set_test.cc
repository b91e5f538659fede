#include "server/storage/checkpoint_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/layout/tensor_parts.h"
#include "server/storage/checkpoint_store.h"
#include "server/storage/posix_disk.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

/// Three shards, two of which cut a tensor.
constexpr ParameterRange kParts[] = {{0, 40}, {40, 64}, {64, 100}};
constexpr uint64_t kRunId = 0xcd;

TensorLayout Model() { return LayoutOf({48, 52}); }

/// Returns the values of an array of the whole model.
std::vector<float> ValuesFrom(float first) {
  std::vector<float> values(100);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class CheckpointSetTest : public testing::Test {
 protected:
  CheckpointSetTest() { std::filesystem::remove_all(directory_); }
  ~CheckpointSetTest() override { std::filesystem::remove_all(directory_); }

  void Save(uint32_t shard) {
    const ParameterRange& range = kParts[shard];
    const auto part = [&range](const std::vector<float>& all) {
      return std::span(all).subspan(range.begin, range.size());
    };
    const CheckpointArray arrays[] = {{"weights", part(weights_)}, {"state0", part(momentum_)}};
    auto store = CheckpointStore::Open(disk_, directory_, kRunId, ShardId{shard}).value();
    ASSERT_TRUE(store
                    ->Save({.run = kRunId,
                            .shard = ShardId{shard},
                            .range = range,
                            .saved = {.version = Version{3}}},
                           PartOf(Model(), range), "state of shard " + std::to_string(shard),
                           arrays)
                    .ok());
  }

  CheckpointSet Open() {
    const auto listed = ListCheckpoints(disk_, directory_);
    EXPECT_TRUE(listed.ok()) << listed.status();
    absl::StatusOr<CheckpointSet> set =
        CheckpointSet::Open(disk_, ChooseForExport(*listed, std::nullopt).value());
    EXPECT_TRUE(set.ok()) << set.status();
    return *std::move(set);
  }

  /// Reads both arrays of every range, and compares them with what was saved.
  void ExpectRange(const CheckpointSet& set, const ParameterRange& range) {
    std::vector<float> weights(range.size());
    std::vector<float> momentum(range.size());
    const LoadedArray arrays[] = {{"state0", momentum}, {"weights", weights}};
    const absl::Status read = set.ReadRange(range, arrays);
    ASSERT_TRUE(read.ok()) << read;
    for (size_t i = 0; i < range.size(); ++i) {
      ASSERT_EQ(weights[i], weights_[range.begin + i]) << "value " << i;
      ASSERT_EQ(momentum[i], momentum_[range.begin + i]) << "value " << i;
    }
  }

  const std::string directory_ = testing::TempDir() + "/checkpoint_set_test";
  const std::vector<float> weights_ = ValuesFrom(1000);
  const std::vector<float> momentum_ = ValuesFrom(2000);
  PosixDisk disk_;
};

TEST_F(CheckpointSetTest, ReadsAnyRangeOfTheModel) {
  for (const uint32_t shard : {0u, 1u, 2u}) Save(shard);
  const CheckpointSet set = Open();

  EXPECT_EQ(set.JoinTensors().value(), Model());
  EXPECT_EQ(set.DifferenceFrom(Model()), "");
  EXPECT_EQ(set.VersionText(), "version 3");
  for (const ParameterRange& range : std::vector<ParameterRange>{
           {0, 100}, {0, 40}, {40, 64}, {10, 20}, {39, 65}, {50, 100}, {99, 100}}) {
    SCOPED_TRACE(testing::Message() << range.begin << " to " << range.end);
    ExpectRange(set, range);
  }
  EXPECT_EQ(set.ReadStateOf({40, 100}).value(), "state of shard 1");
}

TEST_F(CheckpointSetTest, AServerNeedsOnlyTheShardsThatHaveItsRange) {
  Save(1);
  const CheckpointSet set = Open();

  EXPECT_EQ(set.DifferenceFrom(Model()), "");
  ExpectRange(set, {45, 60});
  std::vector<float> values(30);
  const LoadedArray weights = {"weights", values};
  EXPECT_THAT(set.ReadRange({40, 70}, {&weights, 1}).message(),
              HasSubstr("the values from 64 on of the model, up to 70, are missing"));
  EXPECT_TRUE(absl::IsDataLoss(set.JoinTensors().status()));
}

TEST_F(CheckpointSetTest, NamesTheTensorOfAnotherModel) {
  Save(0);
  Save(1);
  const CheckpointSet set = Open();

  EXPECT_THAT(set.DifferenceFrom(LayoutOf({48, 51})), HasSubstr("1.weight"));
  EXPECT_THAT(set.DifferenceFrom(LayoutOf({48})), HasSubstr("and the run's has 48"));
}

}  // namespace
}  // namespace slipstream
