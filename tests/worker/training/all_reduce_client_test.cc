// Workers that are threads of this process add up gradients and publish to fake shards.

#include "worker/training/all_reduce_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "common/layout/shard_map.h"
#include "tests/support/fake_shard.h"
#include "tests/support/specs.h"
#include "tests/worker/allreduce/ranks.h"

namespace slipstream {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

constexpr size_t kValues = 300;
constexpr uint32_t kBatchSize = 10;
constexpr uint64_t kExamples = 75;  // 8 mini-batches an epoch, the last of which has 5 examples.
constexpr uint64_t kBatches = 16;

/// Arenas without a plan.
class PlainArenas final : public ModelArenas {
 public:
  std::span<float> weights_host() override { return weights_; }
  void WeightsArrived(ParameterRange) override {}
  void ExpectWeights() override {}
  void RevokeWeights(ParameterRange) override {}
  void AbandonWeights() override {}
  std::span<float> gradients_host() override { return gradients_; }

 private:
  std::vector<float> weights_ = std::vector<float>(kValues);
  std::vector<float> gradients_ = std::vector<float>(kValues);
};

uint32_t ExamplesOf(uint64_t batch) { return batch % 8 == 7 ? 5 : kBatchSize; }

/// The gradient of a mini-batch depends on the weights and on the mini-batch.
float GradientAt(float weight, uint64_t batch) {
  return weight - static_cast<float>(batch % 5) + 1.0f;
}

class AllReduceClientTest : public testing::Test {
 protected:
  AllReduceClientTest()
      : layout_(LayoutOf({kValues})),
        map_(ShardMap::Cut(layout_, 2).value()),
        shards_{std::make_unique<FakeShard>(map_.range(ShardId{0}).size(), map_.fingerprint()),
                std::make_unique<FakeShard>(map_.range(ShardId{1}).size(), map_.fingerprint())} {
    run_.consistency.policy = PolicyKind::kAllReduce;
    run_.training.batch_size = kBatchSize;
    run_.training.epochs = 2;
    run_.optimizer.kind = RuleKind::kMomentum;
    run_.optimizer.learning_rate = 0.1;
  }

  /// Does what the loop of a worker would do.
  absl::Status TrainAs(std::unique_ptr<Collective> collective) {
    const uint32_t rank = collective->rank();
    JoinedRun joined;
    joined.identity = {.run = 5, .worker = WorkerId{rank}, .incarnation = Incarnation{rank + 1}};
    joined.servers = {shards_[0]->address(), shards_[1]->address()};
    PlainArenas arenas;
    Interruption interruption;
    ParameterClient servers(
        ParameterClient::Options::For(run_, joined, layout_, map_, ShardOptions::For(run_, map_)),
        {{arenas.weights_host(), arenas.gradients_host(), nullptr}},
        [](absl::Duration) { return true; }, interruption.cancel_switch());
    AllReduceClient client({.run = run_,
                            .layout = layout_,
                            .examples_per_epoch = kExamples,
                            .lease = absl::Milliseconds(10),
                            .sum = {.bucket_values = 100}},
                           std::move(collective), arenas, servers, interruption);
    return TrainWith(client, arenas, rank);
  }

  absl::Status TrainWith(AllReduceClient& client, PlainArenas& arenas, uint32_t rank) {
    for (uint64_t step = 1;; ++step) {
      if (rank == ends_ && step == ends_before_step_) client.OnOrders({.work_ends = true});
      if (rank == dies_ && step == 2) return absl::OkStatus();
      const absl::StatusOr<GradientClient::Step> next = client.Advance(0);
      if (!next.ok()) return next.status();
      if (std::holds_alternative<GradientClient::Finished>(*next)) break;
      const uint64_t batch = std::get<GradientClient::Compute>(*next).batches.front().first;
      GradientFeed& feed =
          client.BeginPush(0, {.batches = {{batch}}, .examples = ExamplesOf(batch), .step = step});
      for (size_t i = 0; i < kValues; ++i) {
        arenas.gradients_host()[i] = GradientAt(arenas.weights_host()[i], batch);
      }
      feed.OnGradientReady({150, kValues});
      if (batch == left_out_) {
        client.AbortPush(0);
        client.Skip(0);
      } else if (absl::Status pushed = client.FinishPush(0, {}); !pushed.ok()) {
        return pushed;
      }
    }
    const std::vector<UnitProgress> progress = client.done().units;
    if (rank == 0) {
      EXPECT_EQ(progress.front().id, 1u);
      done_ = progress.front().batches_done;
    } else {
      EXPECT_TRUE(progress.empty());
    }
    const std::span<const float> weights = arenas.weights_host();
    EXPECT_THAT(weights, Pointwise(FloatNear(1e-5f), Expected(weights_of_rounds_)));
    return client.Drain();
  }

  /// Returns the weights after so many rounds of three workers, computed in one loop.
  std::vector<float> Expected(uint64_t rounds) const {
    std::vector<float> weights(kValues, 0);
    double weight = 0;
    double velocity = 0;
    for (uint64_t round = 0; round < rounds; ++round) {
      double sum = 0;
      double examples = 0;
      for (uint64_t batch = 3 * round; batch < std::min(3 * round + 3, batches_); ++batch) {
        if (batch == left_out_) continue;
        sum +=
            ExamplesOf(batch) * static_cast<double>(GradientAt(static_cast<float>(weight), batch));
        examples += ExamplesOf(batch);
      }
      velocity = run_.optimizer.parameters["momentum"] * velocity + sum / examples;
      weight -= run_.optimizer.learning_rate * velocity;
    }
    weights.assign(kValues, static_cast<float>(weight));
    return weights;
  }

  std::vector<absl::Status> Train() {
    LocalPlace place;
    std::vector<absl::Status> results(3);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        const std::unique_ptr<MeetingPlace> seen = place.Of(rank);
        auto collective = Collective::Connect({.rank = rank, .ranks = 3}, *seen);
        results[rank] = collective.ok() ? TrainAs(*std::move(collective)) : collective.status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  const TensorLayout layout_;
  const ShardMap map_;
  std::unique_ptr<FakeShard> shards_[2];
  RunSpec run_;
  uint64_t batches_ = kBatches;
  uint64_t weights_of_rounds_ = 6;
  uint64_t left_out_ = std::numeric_limits<uint64_t>::max();
  uint32_t ends_ = 3;  // No rank.
  uint64_t ends_before_step_ = 0;
  uint32_t dies_ = 3;
  uint64_t done_ = 0;
};

TEST_F(AllReduceClientTest, MakesTheWeightsOfOneLearnerAndPublishesThemEachEpoch) {
  // 16 mini-batches are 6 rounds of three, in the last of which two ranks have none.
  ASSERT_THAT(Train(), Each(absl::OkStatus()));

  EXPECT_EQ(done_, kBatches);
  for (const auto& shard : shards_) {
    const std::vector<FakeShard::Push> pushes = shard->taken();
    ASSERT_EQ(pushes.size(), 2u);
    // Three rounds end the first epoch, with the first mini-batch of the second.
    EXPECT_EQ(pushes[0].header.batches(0).count(), 9u);
    EXPECT_EQ(pushes[0].header.examples(), 85u);
    EXPECT_EQ(pushes[1].header.batches(0).first(), 9u);
    EXPECT_EQ(pushes[1].header.examples(), 65u);
    EXPECT_THAT(pushes[0].values, Each(FloatNear(Expected(3).front(), 1e-5f)));
    EXPECT_THAT(pushes[1].values, Each(FloatNear(Expected(6).front(), 1e-5f)));
  }
}

TEST_F(AllReduceClientTest, LeavesOutTheSameMiniBatchOnAllRanks) {
  left_out_ = 4;
  EXPECT_THAT(Train(), Each(absl::OkStatus()));
  EXPECT_EQ(done_, kBatches);
}

TEST_F(AllReduceClientTest, DoesAsManyStepsAsTheRunHas) {
  run_.training.max_steps = batches_ = 7;
  weights_of_rounds_ = 3;
  EXPECT_THAT(Train(), Each(absl::OkStatus()));
  EXPECT_EQ(done_, 7u);
  EXPECT_EQ(shards_[0]->taken().size(), 1u);
}

TEST_F(AllReduceClientTest, AllEndAfterTheSameRoundIfOneIsAskedTo) {
  ends_ = 2;
  ends_before_step_ = 2;
  weights_of_rounds_ = 2;
  EXPECT_THAT(Train(), Each(absl::OkStatus()));
  EXPECT_EQ(done_, 6u);
  EXPECT_EQ(shards_[0]->taken().size(), 1u) << "the weights at the end are published";
}

TEST_F(AllReduceClientTest, FailsOnAllOthersIfOneIsLost) {
  dies_ = 1;
  const std::vector<absl::Status> results = Train();
  // The coordinator did not say who is gone in the time that it has.
  EXPECT_EQ(results[0].code(), absl::StatusCode::kUnavailable) << results[0];
  EXPECT_EQ(results[2].code(), absl::StatusCode::kUnavailable) << results[2];
}

}  // namespace
}  // namespace slipstream
