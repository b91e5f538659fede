// Tests of what a checkpoint takes of a shard's values, and of going on from it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/data_plane/training_state.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

constexpr size_t kCount = 1000;

/// A gradient that differs from step to step and from value to value.
std::vector<float> GradientOf(uint64_t step) {
  std::vector<float> values(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    values[i] = static_cast<float>((step * 31 + i * 17) % 101) / 101.0f - 0.5f;
  }
  return values;
}

/// The values of a shard whose rule is `kind`.
class SavedStateTest : public testing::TestWithParam<RuleKind> {
 protected:
  std::unique_ptr<TrainingState> NewState() const {
    OptimizerSpec optimizer;
    optimizer.kind = GetParam();
    return TrainingState::TryMake(optimizer, LayoutOf({kCount}), {0, kCount}, false);
  }

  static std::unique_ptr<TrainingState> Begun(std::unique_ptr<TrainingState> state) {
    std::shared_ptr<FloatBuffer> weights = state->NewWeights();
    std::ranges::fill(weights->values(), 1.0f);
    state->SetInitialWeights(std::move(weights));
    return state;
  }

  /// Makes the versions from `from` to `to`. Returns the weights of the last.
  static std::vector<float> Train(TrainingState& state, uint64_t from, uint64_t to) {
    for (uint64_t version = from; version < to; ++version) {
      Update(state, version, GradientOf(version), {});
    }
    return {state.newest()->values().begin(), state.newest()->values().end()};
  }

  static void Update(TrainingState& state, uint64_t version, const std::vector<float>& gradient,
                     const TensorSet& absent) {
    FoldStep step;
    step.fold = {.weight = 1.0f, .first = true};
    step.payload.pieces.push_back(std::make_shared<const ReceivedValues>(
        std::vector<grpc::Slice>(), Segments{std::as_bytes(std::span(gradient))}));
    UpdateJob job;
    job.folds.push_back(std::move(step));
    job.update = {.from = Version{version},
                  .to = Version{version + 1},
                  .learning_rate = 0.1f,
                  .absent = absent};
    state.Run(job);
  }

  static std::vector<std::vector<float>> ValuesOf(const SavedValues& saved) {
    std::vector<std::vector<float>> all;
    for (const auto& [name, array] : saved.arrays) {
      all.emplace_back(array->values().begin(), array->values().end());
    }
    return all;
  }
};

TEST_P(SavedStateTest, UpdatesLeaveSavedValuesAlone) {
  const std::unique_ptr<TrainingState> state = Begun(NewState());
  Train(*state, 0, 5);
  const SavedValues saved = state->Save();
  const std::vector<std::vector<float>> before = ValuesOf(saved);

  Train(*state, 5, 10);

  EXPECT_EQ(ValuesOf(saved), before);
}

TEST_P(SavedStateTest, AStateThatGoesOnFromSavedValuesMakesTheSameVersions) {
  const std::unique_ptr<TrainingState> state = Begun(NewState());
  Train(*state, 0, 5);
  const SavedValues saved = state->Save();
  const std::vector<float> expected = Train(*state, 5, 10);

  const std::unique_ptr<TrainingState> other = NewState();
  auto arrays = other->NewArrays();
  ASSERT_EQ(arrays.size(), saved.arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ(arrays[i].first, saved.arrays[i].first);
    std::ranges::copy(saved.arrays[i].second->values(), arrays[i].second->values().begin());
  }
  other->Restore(std::move(arrays), saved);

  EXPECT_EQ(Train(*other, 5, 10), expected);
}

TEST_P(SavedStateTest, AStateThatGoesBackMakesTheSameVersionsAgain) {
  const std::unique_ptr<TrainingState> state = Begun(NewState());
  Train(*state, 0, 5);
  const SavedValues saved = state->Save();
  const std::vector<float> expected = Train(*state, 5, 10);

  auto arrays = state->NewArrays();
  for (size_t i = 0; i < arrays.size(); ++i) {
    std::ranges::copy(saved.arrays[i].second->values(), arrays[i].second->values().begin());
  }
  state->Restore(std::move(arrays), saved);

  EXPECT_EQ(Train(*state, 5, 10), expected);
}

TEST_P(SavedStateTest, AnUpdateWithoutAGradientLeavesAllAsItIsUnlessTheRuleCountsUpdates) {
  const std::unique_ptr<TrainingState> state = Begun(NewState());
  Train(*state, 0, 3);  // In the fourth update, delayed momentum advances.
  const std::vector<std::vector<float>> before = ValuesOf(state->Save());
  TensorSet absent;
  absent.Add(0);

  Update(*state, 3, std::vector<float>(kCount), absent);

  EXPECT_EQ(ValuesOf(state->Save()) == before, !RowOf(GetParam()).counts_updates);
}

INSTANTIATE_TEST_SUITE_P(Rules, SavedStateTest,
                         testing::Values(RuleKind::kSgd, RuleKind::kMomentum, RuleKind::kAdam,
                                         RuleKind::kLamb, RuleKind::kDelayedNesterov));

}  // namespace
}  // namespace slipstream
