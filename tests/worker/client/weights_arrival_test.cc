#include "worker/client/weights_arrival.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "common/wire/chunk_wire.h"
#include "tests/support/fake_shard.h"
#include "worker/client/weights_reader.h"

namespace slipstream {
namespace {

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6};
const WeightsHeader kHeader{Version{3}, 6, std::nullopt};

/// Gives the values [begin, end) to `arrival`, as a chunk at `offset`.
absl::Status Take(WeightsArrival& arrival, const std::optional<WeightsHeader>& header,
                  uint64_t offset, size_t begin, size_t end) {
  const std::span<const float> values = std::span(kValues).subspan(begin, end - begin);
  const auto chunk =
      DecodeWeightsChunk(EncodeWeightsChunk(header, offset, {values, std::make_shared<int>(0)}));
  return arrival.Take(chunk->header, chunk->offset, chunk->values.segments());
}

TEST(WeightsArrivalTest, PutsChunksWhereTheyBelong) {
  std::vector<float> target(6);
  WeightsArrival arrival(target);
  ASSERT_TRUE(Take(arrival, kHeader, 0, 0, 4).ok());
  EXPECT_FALSE(arrival.is_complete());

  ASSERT_TRUE(Take(arrival, std::nullopt, 4, 4, 6).ok());

  EXPECT_TRUE(arrival.is_complete());
  EXPECT_EQ(arrival.header(), kHeader);
  EXPECT_EQ(target, kValues);
}

TEST(WeightsArrivalTest, RefusesWhatDoesNotContinueTheWeights) {
  std::vector<float> target(6);
  const WeightsHeader longer{Version{3}, 7, std::nullopt};

  WeightsArrival no_header(target);
  EXPECT_EQ(Take(no_header, std::nullopt, 0, 0, 2).code(), absl::StatusCode::kInternal);
  WeightsArrival other_size(target);
  EXPECT_EQ(Take(other_size, longer, 0, 0, 2).code(), absl::StatusCode::kInternal);
  WeightsArrival gap(target);
  EXPECT_EQ(Take(gap, kHeader, 1, 0, 2).code(), absl::StatusCode::kInternal);
  WeightsArrival second_header(target);
  ASSERT_TRUE(Take(second_header, kHeader, 0, 0, 2).ok());
  EXPECT_EQ(Take(second_header, kHeader, 2, 2, 4).code(), absl::StatusCode::kInternal);
  WeightsArrival too_long(target);
  ASSERT_TRUE(Take(too_long, kHeader, 0, 0, 4).ok());
  EXPECT_EQ(Take(too_long, std::nullopt, 4, 0, 3).code(), absl::StatusCode::kInternal);
}

/// Records the events that it is told of, as text.
class NotingListener final : public WeightsListener {
 public:
  void WeightsArrived(ParameterRange range) override { Note("arrived", range); }
  void RevokeWeights(ParameterRange range) override { Note("revoked", range); }
  void AbandonWeights() override {}

  std::string told;

 private:
  void Note(const std::string& what, ParameterRange range) {
    told += what + " " + std::to_string(range.begin) + "-" + std::to_string(range.end) + ";";
  }
};

TEST(WeightsArrivalTest, TellsOfEachChunkAndHoldsBackTheLast) {
  std::vector<float> target(6);
  NotingListener listener;
  WeightsArrival arrival(target, 100, &listener);
  ASSERT_TRUE(Take(arrival, kHeader, 0, 0, 4).ok());
  ASSERT_TRUE(Take(arrival, std::nullopt, 4, 4, 6).ok());
  EXPECT_EQ(listener.told, "arrived 100-104;");

  arrival.Finish();

  EXPECT_EQ(listener.told, "arrived 100-104;arrived 104-106;");
}

TEST(WeightsArrivalTest, AVersionThatIsHereNeedNotBeSent) {
  std::vector<float> target = {9, 8, 7, 6, 5, 4};
  NotingListener listener;
  WeightsArrival arrival(target, 100, &listener);
  arrival.StartFrom(kHeader.generation, kHeader.version);
  WeightsHeader unchanged = kHeader;
  unchanged.unchanged = true;

  EXPECT_TRUE(arrival.Holds(kHeader.generation, kHeader.version));
  ASSERT_TRUE(Take(arrival, unchanged, 0, 0, 0).ok());
  EXPECT_TRUE(arrival.is_complete());
  arrival.Finish();

  EXPECT_EQ(target, (std::vector<float>{9, 8, 7, 6, 5, 4}));
  EXPECT_EQ(listener.told, "arrived 100-106;");
}

TEST(WeightsArrivalTest, AVersionThatIsNotHereMustBeSent) {
  std::vector<float> target(6);
  WeightsHeader unchanged = kHeader;
  unchanged.unchanged = true;
  WeightsArrival knows_nothing(target);
  EXPECT_EQ(Take(knows_nothing, unchanged, 0, 0, 0).code(), absl::StatusCode::kInternal);

  // A newer version has been announced, and may have overwritten the older one.
  WeightsArrival arrival(target);
  arrival.StartFrom(kHeader.generation, kHeader.version);
  const WeightsHeader newer{Version{4}, 6, std::nullopt};
  ASSERT_TRUE(Take(arrival, newer, 0, 0, 2).ok());
  EXPECT_FALSE(arrival.Holds(kHeader.generation, kHeader.version));
  arrival.StartTry();
  EXPECT_EQ(Take(arrival, unchanged, 0, 0, 0).code(), absl::StatusCode::kInternal);
}

TEST(WeightsArrivalTest, AVersionThatWasWrittenOverMustBeSent) {
  std::vector<float> target(6);
  WeightsArrival arrival(target);
  arrival.StartFrom(kHeader.generation, kHeader.version);
  const auto taken_back = [] { return false; };
  EXPECT_TRUE(absl::IsUnavailable(
      arrival.Take(kHeader, 0, {std::as_bytes(std::span(kValues))}, taken_back)));

  arrival.StartTry();

  EXPECT_FALSE(arrival.Holds(kHeader.generation, kHeader.version));
  WeightsHeader unchanged = kHeader;
  unchanged.unchanged = true;
  EXPECT_EQ(Take(arrival, unchanged, 0, 0, 0).code(), absl::StatusCode::kInternal);
}

TEST(WeightsArrivalTest, AnotherTryOfTheSameVersionGoesOnWhereTheLastOneEnded) {
  std::vector<float> target(6);
  NotingListener listener;
  WeightsArrival arrival(target, 0, &listener);
  ASSERT_TRUE(Take(arrival, kHeader, 0, 0, 2).ok());
  target[0] = 7;  // Must not be rewritten, as it may be in use.

  arrival.StartTry();
  for (const size_t begin : {0, 2, 4}) {
    EXPECT_FALSE(arrival.is_complete());
    const auto header = begin == 0 ? std::optional(kHeader) : std::nullopt;
    ASSERT_TRUE(Take(arrival, header, begin, begin, begin + 2).ok());
  }
  arrival.Finish();

  EXPECT_TRUE(arrival.is_complete());
  EXPECT_EQ(target, (std::vector<float>{7, 2, 3, 4, 5, 6}));
  EXPECT_EQ(listener.told, "arrived 0-2;arrived 2-4;arrived 4-6;");
}

TEST(WeightsArrivalTest, AnotherTryOfANewerVersionReplacesWhatCame) {
  std::vector<float> target(6);
  NotingListener listener;
  WeightsArrival arrival(target, 0, &listener);
  ASSERT_TRUE(Take(arrival, kHeader, 0, 0, 4).ok());

  arrival.StartTry();
  const WeightsHeader newer{Version{4}, 6, std::nullopt};
  ASSERT_TRUE(Take(arrival, newer, 0, 0, 6).ok());
  arrival.Finish();

  EXPECT_EQ(arrival.header(), newer);
  EXPECT_EQ(target, kValues);
  EXPECT_EQ(listener.told, "arrived 0-4;arrived 0-6;");
}

}  // namespace

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
  ASSERT_TRUE(reader_.Read(weights_).ok());

  const v1::PullRequest pull = first_.pulls().at(0);
  EXPECT_EQ(pull.identity().worker(), 3u);
  EXPECT_EQ(pull.identity().incarnation(), 5u);
  EXPECT_FALSE(pull.trains());
  EXPECT_EQ(pull.weights_encoding(), v1::FP32) << "rounded weights are for training only";
}

TEST_F(WeightsReaderTest, ReportsVersionsApartWhereShardsAreNotInStep) {
  first_.SetVersion(5);
  second_.SetVersion(7);

  EXPECT_EQ(reader_.Read(weights_).value().versions,
            (std::vector<Version>{Version{5}, Version{7}}));
}

TEST_F(WeightsReaderTest, WaitsForTheShardBehindWhereShardsAreInStep) {
  first_.KeepInStep();
  second_.KeepInStep();
  first_.SetVersion(5);
  second_.SetVersion(7);
  std::thread publisher([this] {
    while (first_.pulls().size() < 2) std::this_thread::yield();
    first_.SetVersion(7);
  });

  const absl::StatusOr<WeightsReader::Reading> reading = reader_.Read(weights_);
  publisher.join();

  EXPECT_EQ(reading.value().versions, (std::vector<Version>{Version{7}, Version{7}}));
  EXPECT_EQ(second_.pulls().size(), 1u);
}

TEST_F(WeightsReaderTest, WaitsForTheShardOfAnEarlierGenerationWhateverItsVersion) {
  first_.KeepInStep();
  second_.KeepInStep();
  first_.ReturnTo(0);
  second_.SetVersion(7);
  std::thread publisher([this] {
    while (second_.pulls().size() < 2) std::this_thread::yield();
    second_.ReturnTo(0);
  });

  const absl::StatusOr<WeightsReader::Reading> reading = reader_.Read(weights_);
  publisher.join();

  EXPECT_EQ(reading.value().versions, (std::vector<Version>{Version{0}, Version{0}}));
  EXPECT_EQ(first_.pulls().size(), 1u);
}

}  // namespace

}  // namespace slipstream
