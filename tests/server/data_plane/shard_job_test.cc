#include "server/data_plane/shard_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "server/data_plane/shard_engine.h"
#include "tests/server/data_plane/first_orders.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

constexpr size_t kCount = 8;

std::unique_ptr<TrainingState> NewState(const OptimizerSpec& optimizer = {},
                                        const TensorLayout& layout = LayoutOf({kCount})) {
  return TrainingState::TryMake(optimizer, layout, {0, kCount}, false);
}

ShardJob InitialJob(TrainingState& state, float value) {
  std::shared_ptr<FloatBuffer> weights = state.NewWeights();
  std::ranges::fill(weights->values(), value);
  return {state, ShardJob::Initial{std::move(weights)}};
}

/// Returns the weights that the job makes, if it makes any.
std::optional<Weights> Made(ShardJob job) {
  job.Run();
  return job.result().made;
}

std::optional<Weights> Made(TrainingState& state, UpdateJob job) {
  return Made(ShardJob(state, std::move(job)));
}

FoldStep Gradient(const std::vector<float>& values) {
  FoldStep step;
  step.fold.weight = 1.0f;
  step.fold.first = true;
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
  for (size_t begin = 0; begin < kCount; begin += kCount / 2) {
    Segments half = {{bytes + begin * sizeof(float), kCount / 2 * sizeof(float)}};
    step.payload.pieces.push_back(
        std::make_shared<const ReceivedValues>(std::vector<grpc::Slice>(), std::move(half)));
  }
  step.payload.bytes = values.size() * sizeof(float);
  return step;
}

TEST(ShardJobTest, MakesInitialWeightsTheNewestWithoutAVersionOfItsOwn) {
  const std::unique_ptr<TrainingState> state = NewState();
  ShardJob job = InitialJob(*state, 3.0f);

  EXPECT_EQ(job.version(), std::nullopt);
  EXPECT_EQ(job.payload_bytes(), 0u);
  const std::optional<Weights> made = Made(std::move(job));

  ASSERT_TRUE(made.has_value());
  EXPECT_EQ((*made)->values().front(), 3.0f);
}

TEST(ShardJobTest, SaysBeforeItRunsWhatAnUpdateMakesAndFrees) {
  const std::unique_ptr<TrainingState> state = NewState();
  ASSERT_TRUE(Made(InitialJob(*state, 3.0f)).has_value());
  const std::vector<float> gradient = {1, 2, 3, 4, 5, 6, 7, 8};
  UpdateJob update;
  update.folds.push_back(Gradient(gradient));
  update.update = {.from = Version{4}, .to = Version{5}, .learning_rate = 0.5f};
  ShardJob job(*state, std::move(update));

  EXPECT_EQ(job.version(), Version{5});
  EXPECT_EQ(job.payload_bytes(), kCount * sizeof(float));
  const std::optional<Weights> made = Made(std::move(job));

  ASSERT_TRUE(made.has_value());
  EXPECT_THAT((*made)->values(), ElementsAre(2.5f, 2, 1.5f, 1, 0.5f, 0, -0.5f, -1));
}

/// Expects these weights after a first update of weights 1, 1, 1, 10, … at the rate 0.1.
void ExpectFirstStep(TrainingState& state, const std::vector<float>& expected) {
  const std::shared_ptr<FloatBuffer> weights = state.NewWeights();
  std::ranges::copy(std::vector<float>{1, 1, 1, 10, 10, 10, 10, 10}, weights->values().begin());
  state.SetInitialWeights(weights);
  const std::vector<float> gradient = {1, 2, 3, 4, 5, 6, 7, 8};
  UpdateJob job;
  job.folds.push_back(Gradient(gradient));
  job.update = {.from = Version{0}, .to = Version{1}, .learning_rate = 0.1f};

  const std::optional<Weights> made = Made(state, std::move(job));

  ASSERT_TRUE(made.has_value());
  EXPECT_THAT((*made)->values(), Pointwise(FloatNear(1e-5f), expected));
}

/// The expected values follow by hand: LAMB's first step is 1 for each value before it is scaled.
TEST(ShardJobTest, MeasuresTensorsWholeWhereverPayloadsAreCut) {
  const std::unique_ptr<TrainingState> state =
      NewState({.kind = RuleKind::kLamb}, LayoutOf({3, kCount - 3}));

  ExpectFirstStep(*state, {0.9f, 0.9f, 0.9f, 9.0f, 9.0f, 9.0f, 9.0f, 9.0f});
}

/// As above; the second tensor has half the rate and the decay 1, and so a step of 1 + 10 before it
/// is scaled. The third is frozen.
TEST(ShardJobTest, MeasuredTensorsFollowOptionsOfTheirOwn) {
  const OptimizerSpec optimizer = {
      .kind = RuleKind::kLamb,
      .per_tensor = {{.match = "1.*", .weight_decay = 1, .learning_rate_factor = 0.5},
                     {.match = "2.*", .learning_rate_factor = 0}}};
  const std::unique_ptr<TrainingState> state = NewState(optimizer, LayoutOf({3, 3, 2}));

  ExpectFirstStep(*state, {0.9f, 0.9f, 0.9f, 9.5f, 9.5f, 9.5f, 10.0f, 10.0f});
}

/// The second tensor has a tenth of the rate and no decay, and the third is frozen.
TEST(ShardJobTest, TensorsFollowOptionsOfTheirOwn) {
  const OptimizerSpec optimizer = {
      .weight_decay = 0.5,
      .per_tensor = {{.match = "1.weight", .weight_decay = 0, .learning_rate_factor = 0.1},
                     {.match = "2.weight", .learning_rate_factor = 0}}};
  const std::unique_ptr<TrainingState> state = NewState(optimizer, LayoutOf({3, 3, 2}));
  ASSERT_TRUE(Made(InitialJob(*state, 4.0f)).has_value());
  const std::vector<float> gradient = {1, 1, 1, 10, 10, 10, 1, 1};
  UpdateJob fold;
  fold.folds.push_back(Gradient(gradient));
  ASSERT_FALSE(Made(*state, std::move(fold)).has_value());
  UpdateJob job;
  job.folds.push_back(Gradient(gradient));
  job.folds.front().fold.first = false;
  job.update = {
      .from = Version{0}, .to = Version{1}, .inverse_divisor = 0.5f, .learning_rate = 0.5f};

  const std::optional<Weights> made = Made(*state, std::move(job));

  ASSERT_TRUE(made.has_value());
  EXPECT_THAT((*made)->values(),
              Pointwise(FloatNear(1e-6f), {2.5f, 2.5f, 2.5f, 3.5f, 3.5f, 3.5f, 4.0f, 4.0f}));
}

/// The figure published for DC-ASGD: θ = 0.8, base 1, g = 0.5, η = 0.1, λ = 2 give 0.76.
TEST(ShardJobTest, CompensatesAGradientByTheWeightsItWasComputedFrom) {
  OptimizerSpec optimizer;
  optimizer.kind = RuleKind::kSgd;
  optimizer.staleness_scaling = StalenessScaling::kDelayCompensated;
  optimizer.scaling_parameters["delay_compensation"] = 2;
  const std::unique_ptr<TrainingState> state = NewState(optimizer);
  const std::optional<Weights> base = Made(InitialJob(*state, 1.0f));
  ASSERT_TRUE(Made(InitialJob(*state, 0.8f)).has_value());
  const std::vector<float> gradient(kCount, 0.5f);
  const auto update = [&](Weights computed_from) {
    UpdateJob job;
    job.folds.push_back(Gradient(gradient));
    job.folds.front().payload.base = std::move(computed_from);
    job.update = {.from = Version{4}, .to = Version{5}, .learning_rate = 0.1f};
    return Made(*state, std::move(job));
  };

  EXPECT_THAT((*update(*base))->values(),
              Pointwise(FloatNear(1e-6f), std::vector<float>(kCount, 0.76f)));
  EXPECT_THAT((*update(nullptr))->values(),
              Pointwise(FloatNear(1e-6f), std::vector<float>(kCount, 0.71f)))
      << "not compensated: its base is the newest version";
  EXPECT_EQ(base->use_count(), 1) << "let go of with the gradient";
}

/// θ = 1, −0.1 · 1 = 0.9, whose step of 0.1 is the mean. A second gradient of θ = 1 has the gap 1 +
/// 0.1/0.1.
TEST(ShardJobTest, GapAwareDividesByHowManyUsualStepsTheWeightsHaveMoved) {
  OptimizerSpec optimizer;
  optimizer.staleness_scaling = StalenessScaling::kGapAware;
  const std::unique_ptr<TrainingState> state = NewState(optimizer);
  const std::optional<Weights> base = Made(InitialJob(*state, 1.0f));
  const std::vector<float> gradient(kCount, 1.0f);
  const auto update = [&] {
    UpdateJob job;
    job.folds.push_back(Gradient(gradient));
    job.folds.front().payload.base = *base;
    job.update = {.from = Version{0}, .to = Version{1}, .learning_rate = 0.1f};
    return Made(*state, std::move(job)).value()->values().front();
  };

  EXPECT_FLOAT_EQ(update(), 0.9f) << "its base is the newest version";
  EXPECT_FLOAT_EQ(update(), 0.85f);
}

/// m = 0.05 · 0.25 after a gradient of the newest weights, and 0.05 · 0.25 · 1.95 after another;
/// λ = 0.1/√m, and the weights have moved by −0.05.
TEST(ShardJobTest, AdaptiveDelayCompensationRemembersFreshGradients) {
  OptimizerSpec optimizer;
  optimizer.staleness_scaling = StalenessScaling::kDelayAdaptive;
  optimizer.scaling_parameters["delay_strength"] = 0.1;
  const std::unique_ptr<TrainingState> state = NewState(optimizer);
  const std::optional<Weights> base = Made(InitialJob(*state, 1.0f));
  const std::vector<float> gradient(kCount, 0.5f);
  const auto update = [&](Weights computed_from) {
    UpdateJob job;
    job.folds.push_back(Gradient(gradient));
    job.folds.front().payload.base = std::move(computed_from);
    job.update = {.from = Version{0}, .to = Version{1}, .learning_rate = 0.1f};
    return Made(*state, std::move(job)).value()->values().front();
  };

  EXPECT_FLOAT_EQ(update(nullptr), 0.95f);
  const double strength = 0.1 / std::sqrt(0.05 * 0.25 * 1.95 + 1e-7);
  const double compensated = 0.5 + strength * 0.25 * -0.05;
  EXPECT_NEAR(update(*base), 0.95 - 0.1 * compensated, 1e-6);
}

/// Returns whether the shard would run this job on the thread whose push caused it.
bool IsShort(TrainingState& state, UpdateJob job) {
  return ShardJob(state, std::move(job)).is_short();
}

TEST(ShardJobTest, IsShortIfLittleIsToBeReadOrItWasReadAlready) {
  const std::unique_ptr<TrainingState> state = NewState();
  ShardJob initial = InitialJob(*state, 3.0f);
  EXPECT_FALSE(initial.is_short()) << "makes the first version, once";
  ASSERT_TRUE(Made(std::move(initial)).has_value());
  const std::vector<float> gradient(kCount, 1.0f);

  UpdateJob little;
  little.folds.push_back(Gradient(gradient));
  EXPECT_TRUE(IsShort(*state, little));
  UpdateJob much;
  much.folds.push_back(Gradient(gradient));
  much.folds.front().payload.bytes = uint64_t{64} << 20;
  much.update = Update{.is_drafted = true};
  EXPECT_FALSE(IsShort(*state, much));
  const std::shared_ptr<UpdateDraft> draft = state->BeginDraft({});
  much.folds.front().payload.draft = draft;
  EXPECT_FALSE(IsShort(*state, much)) << "values are missing";
  draft->Add(0, {{reinterpret_cast<const std::byte*>(gradient.data()), kCount * sizeof(float)}});
  EXPECT_TRUE(IsShort(*state, much));
  much.update->is_drafted = false;
  EXPECT_FALSE(IsShort(*state, much)) << "another push was complete first";
}

TEST(ShardJobTest, IsNotShortIfItUpdatesByWhatWasFoldedBefore) {
  const std::unique_ptr<TrainingState> state = NewState();
  UpdateJob job;
  EXPECT_TRUE(IsShort(*state, job)) << "nothing is to be done";
  job.update = {.from = Version{4}, .to = Version{5}};
  EXPECT_FALSE(IsShort(*state, job));
  job.update->is_empty = true;
  EXPECT_TRUE(IsShort(*state, job));
}

TEST(ShardJobTest, MakesNothingOfAFoldInAnOpenRound) {
  const std::unique_ptr<TrainingState> state = NewState();
  ASSERT_TRUE(Made(InitialJob(*state, 3.0f)).has_value());
  const std::vector<float> gradient(kCount, 1.0f);
  UpdateJob fold;
  fold.folds.push_back(Gradient(gradient));
  ShardJob job(*state, std::move(fold));

  EXPECT_EQ(job.version(), std::nullopt);
  EXPECT_EQ(Made(std::move(job)), std::nullopt);
}

}  // namespace

namespace {

using testing::HasSubstr;

constexpr uint64_t kValues = uint64_t{1} << 20;
ServerOrders Orders() { return FirstOrders(/*run=*/5, kValues, /*members=*/0, /*grant=*/1); }

/// Returns the shard's answer to the client that is about to send the initial weights.
absl::Status Begin(ShardEngine& engine, const ServerOrders& orders) {
  return engine
      .BeginInitialize({orders.initializer, orders.grant, orders.model->shard_map.fingerprint(),
                        orders.model->layout.parameters()})
      .status();
}

ShardEngine::Options WithMemory(uint64_t bytes) {
  ShardEngine::Options options;
  options.run.cluster.workers = 2;
  options.memory_available = [bytes] { return bytes; };
  return options;
}

TEST(ShardMemoryTest, AModelThatFitsIsTaken) {
  ShardEngine engine(WithMemory((2 + 2 + 2) * 4 * kValues + (uint64_t{64} << 20)), std::nullopt);
  const ServerOrders orders = Orders();

  engine.OnOrders(orders);

  EXPECT_EQ(engine.Failure(), "");
  EXPECT_TRUE(Begin(engine, orders).ok());
}

TEST(ShardMemoryTest, AWorkerWithTwoGradientsUnderWayTakesTwice) {
  ShardEngine::Options options = WithMemory((2 + 2 + 2) * 4 * kValues + (uint64_t{64} << 20));
  options.run.training.pipeline_depth = 2;
  ShardEngine engine(options, std::nullopt);

  engine.OnOrders(Orders());

  EXPECT_THAT(engine.Failure(), HasSubstr("with 4 gradients under way"));
}

TEST(ShardMemoryTest, AModelThatDoesNotIsRefusedWithTheBytesItNeeds) {
  ShardEngine engine(WithMemory((2 + 2 + 2) * 4 * kValues + (uint64_t{64} << 20) - 1),
                     std::nullopt);
  const ServerOrders orders = Orders();

  engine.OnOrders(orders);

  EXPECT_THAT(engine.Failure(),
              HasSubstr("the model is too large for this server: 4.0 MiB of "
                        "weights, which with 2 gradients under way can take 88.0 MiB "
                        "(92274688 bytes) of memory"));
  const absl::Status refused = Begin(engine, orders);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(), engine.Failure());
}

}  // namespace

}  // namespace slipstream
