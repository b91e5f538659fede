// Tests of weights that gradients are added to in place: by several threads, and through the
// service.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "server/data_plane/in_place_weights.h"
#include "server/data_plane/shard_job.h"
#include "server/data_plane/training_state.h"
#include "tests/server/data_plane/shard_service_fixture.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

constexpr ConsistencySpec kHogwild = {ConsistencySpec::Policy::kHogwild};

/// Several blocks, and a part of one.
constexpr size_t kCount = 70'001;

/// One gradient of ones in pieces that end anywhere.
UpdateJob OnesJob(const std::vector<float>& ones, uint64_t number) {
  FoldStep step = {.fold = {.weight = 1, .first = true}, .payload = {}};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(ones));
  constexpr size_t kPieceBytes = 20'011 * sizeof(float);
  for (size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
    Segments segments = {bytes.subspan(begin, std::min(kPieceBytes, bytes.size() - begin))};
    step.payload.pieces.push_back(
        std::make_shared<const ReceivedValues>(std::vector<grpc::Slice>(), std::move(segments)));
  }
  UpdateJob job;
  job.folds.push_back(std::move(step));
  job.update = {.from = Version{number}, .to = Version{number + 1}, .learning_rate = 1};
  return job;
}

void RunJob(TrainingState& state, UpdateJob job) { state.Run(job); }

std::unique_ptr<TrainingState> StateOfZeros() {
  std::unique_ptr<TrainingState> state =
      TrainingState::TryMake(OptimizerSpec(), LayoutOf({kCount}), {0, kCount}, true);
  std::shared_ptr<FloatBuffer> zeros = state->NewWeights();
  std::ranges::fill(zeros->values(), 0.0f);
  state->SetInitialWeights(std::move(zeros));
  return state;
}

TEST(InPlaceTest, LosesNoAdditionOfThreadsThatAddAtOnce) {
  const std::unique_ptr<TrainingState> state = StateOfZeros();
  const std::vector<float> ones(kCount, 1.0f);
  constexpr int kThreads = 4;
  constexpr int kEach = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) RunJob(*state, OnesJob(ones, 0));
    });
  }
  for (std::thread& thread : threads) thread.join();

  const Weights copy = state->in_place()->Copy();
  EXPECT_TRUE(
      std::ranges::all_of(copy->values(), [](float value) { return value == -kThreads * kEach; }));
}

TEST(InPlaceTest, LeavesATensorWithoutAGradientAlone) {
  OptimizerSpec decaying;
  decaying.weight_decay = 0.5;
  const std::unique_ptr<TrainingState> state = TrainingState::TryMake(
      decaying, LayoutOf({1, 4, 3, kCount}), {2, 2 + kCount}, /*adds_in_place=*/true);
  std::shared_ptr<FloatBuffer> ones = state->NewWeights();
  std::ranges::fill(ones->values(), 1.0f);
  state->SetInitialWeights(std::move(ones));
  const std::vector<float> zeros(kCount, 0.0f);
  UpdateJob job = OnesJob(zeros, 0);
  job.update->absent.Add(2);

  RunJob(*state, std::move(job));

  // The shard has the last three values of tensor 1, then the three of tensor 2.
  const Weights copy = state->in_place()->Copy();
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(copy->values()[i], i >= 3 && i < 6 ? 1.0f : 0.5f) << i;
  }
}

TEST(InPlaceTest, ACopyHoldsWhatWasAddedBeforeItAndStaysAsItIs) {
  const std::unique_ptr<TrainingState> state = StateOfZeros();
  const std::vector<float> ones(kCount, 1.0f);
  constexpr int kAdditions = 200;
  std::atomic<int> added = 0;
  std::thread adding([&] {
    for (int i = 0; i < kAdditions; ++i) {
      RunJob(*state, OnesJob(ones, 0));
      ++added;
    }
  });
  while (added < kAdditions) {
    const int before = added;
    const Weights copy = state->in_place()->Copy();
    const int after = std::min(added + 1, kAdditions);  // One more may be under way.
    const std::vector<float> first(copy->values().begin(), copy->values().end());
    EXPECT_TRUE(std::ranges::all_of(
        first, [&](float value) { return -value >= before && -value <= after; }))
        << "between " << before << " and " << after << " additions";
    EXPECT_TRUE(std::ranges::equal(first, copy->values()));
  }
  adding.join();
}

TEST(InPlaceTest, AVersionIsCopiedOnceForAllWhoReadIt) {
  const std::unique_ptr<TrainingState> state = StateOfZeros();
  InPlaceVersion version(state->in_place());
  const Weights first = version.Get();
  RunJob(*state, OnesJob(std::vector<float>(kCount, 1.0f), 0));

  EXPECT_EQ(version.Get(), first);
  EXPECT_EQ(first->values().front(), 0);
}

TEST(InPlaceTest, ATensorThatIsFrozenKeepsItsWeights) {
  OptimizerSpec optimizer;
  optimizer.per_tensor = {{.match = "0.weight", .learning_rate_factor = 0}};
  const std::unique_ptr<TrainingState> state =
      TrainingState::TryMake(optimizer, LayoutOf({20'000, kCount - 20'000}), {0, kCount}, true);
  std::shared_ptr<FloatBuffer> zeros = state->NewWeights();
  std::ranges::fill(zeros->values(), 0.0f);
  state->SetInitialWeights(std::move(zeros));

  RunJob(*state, OnesJob(std::vector<float>(kCount, 1.0f), 0));

  const Weights copy = state->in_place()->Copy();
  EXPECT_EQ(copy->values()[19'999], 0);
  EXPECT_EQ(copy->values()[20'000], -1);
}

class HogwildServiceTest : public ShardServiceTest {};

TEST_F(HogwildServiceTest, AnAppliedPushIsInTheWeightsThatFollow) {
  Start(kHogwild, 1);

  EXPECT_EQ(Push(Header(0, 1, 0), std::vector<float>(kValues, 2.0f)).outcome(), v1::APPLIED);

  const Pulled pulled = Pull();
  EXPECT_EQ(pulled.version, 1u);
  EXPECT_EQ(pulled.values, std::vector<float>(kValues, -2.0f));
}

TEST_F(HogwildServiceTest, ARepeatedPushIsAddedOnce) {
  Start(kHogwild, 1);
  const std::vector<float> gradient(kValues, 2.0f);
  const v1::PushReply first = Push(Header(0, 1, 0), gradient);

  const v1::PushReply second = Push(Header(0, 1, 0), gradient, /*descending=*/true);

  EXPECT_EQ(second.outcome(), v1::DUPLICATE);
  EXPECT_EQ(second.version(), first.version());
  EXPECT_EQ(Pull().values, std::vector<float>(kValues, -2.0f));
}

TEST_F(HogwildServiceTest, AReaderThatHoldsTheNewestVersionIsSentNoValues) {
  Start(kHogwild, 1);
  Push(Header(0, 1, 0), std::vector<float>(kValues, 2.0f));
  v1::PullRequest request;
  request.set_shard_map(map());
  request.set_held_version(Pull().version);
  grpc::ClientContext context;
  SetDeadline(context);

  auto reader = stub_->Pull(&context, request);
  size_t bytes = 0;
  for (v1::WeightsChunk chunk; reader->Read(&chunk);) {
    bytes += chunk.values().size();
  }

  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_LE(bytes, 8u) << "which say only that nothing has changed";
}

TEST_F(HogwildServiceTest, WorkersThatPushAtOnceAreAllCounted) {
  constexpr uint32_t kWorkers = 4;
  constexpr uint64_t kPushes = 25;
  Start(kHogwild, kWorkers);
  std::vector<std::thread> workers;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([this, worker] {
      for (uint64_t sequence = 1; sequence <= kPushes; ++sequence) {
        const v1::PushReply reply =
            Push(Header(worker, sequence, 0), std::vector<float>(kValues, 1.0f));
        EXPECT_EQ(reply.outcome(), v1::APPLIED);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();

  const Pulled pulled = Pull();
  EXPECT_EQ(pulled.version, kWorkers * kPushes);
  EXPECT_EQ(pulled.values, std::vector<float>(kValues, -1.0f * kWorkers * kPushes));
}

}  // namespace
}  // namespace slipstream
