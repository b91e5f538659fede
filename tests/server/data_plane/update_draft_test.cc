#include "server/data_plane/update_draft.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/data_plane/training_state.h"
#include "tests/support/specs.h"

// Compares an update that is made while its gradient arrives with the same update made at once.

namespace slipstream {
namespace {

constexpr size_t kCount = 1000;
constexpr size_t kChunk = 192;
constexpr uint64_t kSeed = 4711;

/// A rule, and whether tensors have options of their own.
struct Case {
  RuleKind kind;
  bool has_options;
};

std::vector<float> RandomValues(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(kCount);
  for (float& value : values) value = normal(random);
  return values;
}

Segments Part(const std::vector<float>& values, size_t begin) {
  const size_t count = std::min(kChunk, values.size() - begin);
  return {{reinterpret_cast<const std::byte*>(values.data() + begin), count * sizeof(float)}};
}

/// Returns the update state of a shard whose version 0 is drawn from `kSeed`. Its tensors end
/// within chunks.
std::unique_ptr<TrainingState> NewState(const Case& tested) {
  OptimizerSpec optimizer;
  optimizer.kind = tested.kind;
  optimizer.parameters["momentum"] = 0.9;
  optimizer.weight_decay = 0.001;
  if (tested.has_options) {
    optimizer.per_tensor = {{.match = "1.weight", .weight_decay = 0, .learning_rate_factor = 0.3},
                            {.match = "2.weight", .learning_rate_factor = 0}};
  }
  std::unique_ptr<TrainingState> state =
      TrainingState::TryMake(optimizer, LayoutOf({500, 11, 480, 9}), {0, kCount}, false);
  const std::shared_ptr<FloatBuffer> weights = state->NewWeights();
  std::ranges::copy(RandomValues(kSeed), weights->values().begin());
  state->SetInitialWeights(weights);
  return state;
}

Forecast ForecastOf(uint64_t from) {
  return {.from = Version{from}, .weight = 0.5f, .learning_rate = 0.1f};
}

/// Returns the job that the machine orders when `values` are complete and the forecast was right.
/// If there is a draft, the job says that the draft is this update.
UpdateJob Job(const std::vector<float>& values, const Forecast& forecast,
              std::shared_ptr<UpdateDraft> draft = nullptr) {
  UpdateJob job;
  FoldStep& step = job.folds.emplace_back();
  step.fold = {.weight = forecast.weight, .first = true};
  for (size_t begin = 0; begin < kCount; begin += kChunk) {
    step.payload.pieces.push_back(
        std::make_shared<const ReceivedValues>(std::vector<grpc::Slice>(), Part(values, begin)));
  }
  job.update = Update{.from = forecast.from,
                      .to = Next(forecast.from),
                      .is_drafted = draft != nullptr,
                      .learning_rate = forecast.learning_rate};
  step.payload.draft = std::move(draft);
  return job;
}

std::optional<Weights> RunJob(TrainingState& state, UpdateJob job) { return state.Run(job); }

/// Returns the job for a push whose draft was for another update.
UpdateJob UndraftedJob(const std::vector<float>& values, const Forecast& forecast,
                       std::shared_ptr<UpdateDraft> draft) {
  UpdateJob job = Job(values, forecast, std::move(draft));
  job.update->is_drafted = false;
  return job;
}

/// Adds the chunks in the order in which a worker sends them: the last one first.
void AddAll(UpdateDraft& draft, const std::vector<float>& values) {
  for (size_t begin = (kCount - 1) / kChunk * kChunk;; begin -= kChunk) {
    draft.Add(begin, Part(values, begin));
    if (begin == 0) return;
  }
}

void ExpectSameBits(const Weights& actual, const Weights& expected) {
  ASSERT_NE(actual, nullptr);
  EXPECT_EQ(std::memcmp(actual->values().data(), expected->values().data(), kCount * sizeof(float)),
            0);
}

class UpdateDraftTest : public testing::TestWithParam<Case> {
 protected:
  /// Runs the same steps without drafts. Returns the newest weights.
  Weights Plain(const std::vector<uint64_t>& seeds) {
    const std::unique_ptr<TrainingState> state = NewState(GetParam());
    Weights newest;
    for (uint64_t version = 0; version < seeds.size(); ++version) {
      newest = *RunJob(*state, Job(RandomValues(seeds[version]), ForecastOf(version)));
    }
    return newest;
  }

  const std::unique_ptr<TrainingState> training_state_ = NewState(GetParam());
};

/// Returns the rules whose updates can be drafted.
std::vector<Case> DraftedRules() {
  std::vector<Case> cases;
  for (const RuleRow& row : kRuleRows) {
    if (row.measures_tensors) continue;
    for (const bool has_options : {false, true}) cases.push_back({row.kind, has_options});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Rules, UpdateDraftTest, testing::ValuesIn(DraftedRules()),
                         [](const auto& tested) {
                           return std::string(RowOf(tested.param.kind).name) +
                                  (tested.param.has_options ? "_per_tensor" : "");
                         });

TEST_P(UpdateDraftTest, MakesTheSameBitsStepAfterStep) {
  Weights newest;
  for (uint64_t version = 0; version < 3; ++version) {
    const std::vector<float> gradient = RandomValues(version);
    const auto draft = training_state_->BeginDraft(ForecastOf(version));
    AddAll(*draft, gradient);
    newest = *RunJob(*training_state_, Job(gradient, ForecastOf(version), draft));
  }

  ExpectSameBits(newest, Plain({0, 1, 2}));
  EXPECT_EQ(training_state_->Save().updates, 3u);
  const std::vector<float> first = RandomValues(kSeed);
  EXPECT_EQ(std::equal(first.begin() + 511, first.begin() + 991, newest->values().begin() + 511),
            GetParam().has_options)
      << "the third tensor is frozen";
}

TEST_P(UpdateDraftTest, IsThrownAwayIfAnotherPushIsFirst) {
  const std::vector<float> slow = RandomValues(1);
  auto draft = training_state_->BeginDraft(ForecastOf(0));
  draft->Add(0, Part(slow, 0));

  RunJob(*training_state_, Job(RandomValues(0), ForecastOf(0)));
  draft->Add(kChunk, Part(slow, kChunk));
  for (size_t begin = 2 * kChunk; begin < kCount; begin += kChunk) {
    draft->Add(begin, Part(slow, begin));
  }
  const Weights newest =
      *RunJob(*training_state_, UndraftedJob(slow, ForecastOf(1), std::exchange(draft, nullptr)));

  ExpectSameBits(newest, Plain({0, 1}));
  EXPECT_EQ(training_state_->live_versions(), 1u);
}

TEST_P(UpdateDraftTest, IsThrownAwayIfTheOrderIsAnother) {
  const std::vector<float> gradient = RandomValues(0);
  Forecast wrong = ForecastOf(0);
  wrong.learning_rate *= 2;
  const auto draft = training_state_->BeginDraft(wrong);
  AddAll(*draft, gradient);

  const Weights newest = *RunJob(*training_state_, UndraftedJob(gradient, ForecastOf(0), draft));

  ExpectSameBits(newest, Plain({0}));
}

TEST_P(UpdateDraftTest, AnEmptyUpdateLeavesWeightsAndStateAlone) {
  RunJob(*training_state_, Job(RandomValues(0), ForecastOf(0)));
  UpdateJob empty;
  empty.update = Update{.from = Version{1}, .to = Version{2}, .is_empty = true};
  RunJob(*training_state_, std::move(empty));

  ExpectSameBits(*RunJob(*training_state_, Job(RandomValues(1), ForecastOf(2))), Plain({0, 1}));
}

TEST_P(UpdateDraftTest, OneThatMissedValuesIsNotUsed) {
  const std::vector<float> gradient = RandomValues(0);
  const auto draft = training_state_->BeginDraft(ForecastOf(0));
  draft->Add(0, Part(gradient, 0));

  const Weights newest = *RunJob(*training_state_, Job(gradient, ForecastOf(0), draft));

  ExpectSameBits(newest, Plain({0}));
}

TEST_P(UpdateDraftTest, OfAnAbandonedPushLetsGoOfItsBuffer) {
  auto draft = training_state_->BeginDraft(ForecastOf(0));
  EXPECT_EQ(training_state_->BeginDraft(ForecastOf(0)), nullptr) << "one at a time";
  EXPECT_EQ(training_state_->live_versions(), 2u);

  draft.reset();

  EXPECT_EQ(training_state_->live_versions(), 1u);
  EXPECT_NE(training_state_->BeginDraft(ForecastOf(0)), nullptr);
}

TEST_P(UpdateDraftTest, MayBeCancelledWhileItIsWritten) {
  for (uint64_t round = 0; round < 50; ++round) {
    const std::vector<float> slow = RandomValues(2 * round);
    const auto draft = training_state_->BeginDraft(ForecastOf(2 * round));
    std::thread arriving([&] { AddAll(*draft, slow); });
    RunJob(*training_state_, Job(RandomValues(2 * round + 1), ForecastOf(2 * round)));
    arriving.join();
    RunJob(*training_state_, UndraftedJob(slow, ForecastOf(2 * round + 1), draft));
  }

  std::vector<uint64_t> seeds;
  for (uint64_t round = 0; round < 50; ++round) {
    seeds.push_back(2 * round + 1);
    seeds.push_back(2 * round);
  }
  const std::vector<float> next = RandomValues(1000);
  seeds.push_back(1000);
  ExpectSameBits(*RunJob(*training_state_, Job(next, ForecastOf(100))), Plain(seeds));
}

}  // namespace
}  // namespace slipstream
