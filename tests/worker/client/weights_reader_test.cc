#include "worker/client/weights_reader.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "tests/support/fake_shard.h"

namespace slipstream {
namespace {

class WeightsReaderTest : public testing::Test {
 protected:
  WeightsReaderTest()
      : map_(Map()),
        first_(map_.range(ShardId{0}).size(), map_.fingerprint()),
        second_(map_.range(ShardId{1}).size(), map_.fingerprint()),
        weights_(map_.parameters()),
        reader_(
            {77, WorkerId{3}, Incarnation{5}}, {first_.address(), second_.address()}, map_,
            {.weights_encoding = Encoding::kBf16}, [](absl::Duration) { return true; }, cancel_) {}

  static ShardMap Map() {
    TensorLayout layout;
    EXPECT_TRUE(layout.Append("all", {100}).ok());
    return ShardMap::Cut(layout, 2).value();
  }

  const ShardMap map_;
  FakeShard first_;
  FakeShard second_;
  CancelSwitch cancel_;
  std::vector<float> weights_;
  WeightsReader reader_;
};

TEST_F(WeightsReaderTest, ReadsAsItsMemberWithoutPushIntent) {
  ASSERT_TRUE(reader_.Read(false, weights_).ok());

  const v1::PullRequest pull = first_.pulls().at(0);
  EXPECT_EQ(pull.identity().worker(), 3u);
  EXPECT_EQ(pull.identity().incarnation(), 5u);
  EXPECT_FALSE(pull.trains());
  EXPECT_EQ(pull.weights_encoding(), v1::FP32) << "rounded weights are for training only";
}

TEST_F(WeightsReaderTest, ReportsVersionsApartWhereOneIsNotAskedFor) {
  first_.SetVersion(5);
  second_.SetVersion(7);

  EXPECT_EQ(reader_.Read(false, weights_).value().versions,
            (std::vector<Version>{Version{5}, Version{7}}));
}

TEST_F(WeightsReaderTest, WaitsForTheShardBehindWhereOneVersionIsAskedFor) {
  first_.SetVersion(5);
  second_.SetVersion(7);
  std::thread publisher([this] {
    while (first_.pulls().size() < 2) std::this_thread::yield();
    first_.SetVersion(7);
  });

  const absl::StatusOr<WeightsReader::Reading> reading = reader_.Read(true, weights_);
  publisher.join();

  EXPECT_EQ(reading.value().versions, (std::vector<Version>{Version{7}, Version{7}}));
  EXPECT_EQ(second_.pulls().size(), 1u);
}

}  // namespace
}  // namespace slipstream
