#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "common/kernels/fold.h"
#include "common/kernels/rules/update_rule.h"
#include "common/kernels/streamed_stores.h"
#include "common/settings/run_spec.h"
#include "tests/worker/algorithm/scalar_model.h"
#include "worker/algorithm/worker_algorithm.h"
#include "worker/core/worker_core.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

// f(w) = w²/2 has the gradient w, so steps at rate 0.5 from 8 on have the gradients 8, 4 and 2.
TEST(DownpourTest, PushesTheSumOfItsStepsGradients) {
  const std::unique_ptr<const WorkerAlgorithm> downpour =
      MakeWorkerAlgorithm(AlgorithmKind::kDownpour);
  ScalarModel model;
  for (const float pulled : {8.0f, 16.0f}) {  // The second sum begins anew.
    model[Arena::kWeights] = pulled;
    for (uint64_t step = 0; step < 3; ++step) {
      model[Arena::kGradient] = model[Arena::kWeights];
      downpour->OnGradient(model, {.number = step, .learning_rate = 0.5});
    }
    EXPECT_EQ(model[Arena::kWeights], pulled / 8);
    downpour->BeforePush(model, {0, 1});

    EXPECT_EQ(model[Arena::kGradient], pulled * 7 / 4);
  }
}

/// A shard of one weight, which makes a version of each push by Adagrad at rate 0.1.
class AdagradShard {
 public:
  explicit AdagradShard(float weight) : weight_(weight) {}

  void Take(float gradient) {
    OptimizerSpec spec;
    spec.kind = RuleKind::kAdagrad;
    const std::vector<float> weights = {weight_};
    const std::vector<float> squares = {squares_};
    const std::vector<float> sum = {gradient};
    UpdateArrays arrays = {.weights_in = weights, .weights_out = {&weight_, 1}};
    arrays.states[0] = {squares, {&squares_, 1}};
    const std::unique_ptr<const UpdateRule> rule = MakeUpdateRule(spec);
    rule->Update(arrays, {.sum = sum}, {.rate = 0.1f}, rule->InitialScalars(), Stores::kCached);
    ++version_;
  }

  WeightsHeader header() const { return {Version{version_}, 1, std::nullopt}; }
  float weight() const { return weight_; }

 private:
  float weight_;
  float squares_ = 0;
  uint64_t version_ = 0;
};

/// One worker and one shard, which train by turns.
struct Pair {
  RunSpec spec;
  float first_weight = 0;
  double local_rate = 0;
  std::function<float(float weight)> gradient;

  struct Push {
    float gradient = 0;       // The sum that was pushed.
    float shard_weight = 0;   // The shard's weight with it.
    float worker_weight = 0;  // The worker's weight at the begin of its next push.
  };
  std::vector<Push> Train(size_t pushes) const;
};

std::vector<Pair::Push> Pair::Train(size_t pushes) const {
  const auto algorithm = MakeWorkerAlgorithm(spec.worker.algorithm);
  const uint64_t quantum = spec.worker.quantum();
  WorkerCore core({.quantum = quantum, .pushes_per_fetch = spec.worker.pushes_per_fetch()});
  core.OnUnit({.id = 1, .first = 0, .batches = (pushes + 1) * quantum});
  AdagradShard shard(first_weight);
  ScalarModel model;
  const auto fetch = [&core, &shard, &model] {
    model[Arena::kWeights] = shard.weight();
    EXPECT_TRUE(core.OnWeights(ShardId{0}, shard.header()).ok());
  };
  fetch();
  std::vector<Push> made;
  while (made.size() < pushes) {
    const WorkerCore::Action action = core.Next();
    for (uint64_t step = 0; step < quantum; ++step) {
      model[Arena::kGradient] = gradient(model[Arena::kWeights]);
      algorithm->OnGradient(model, {.number = step, .learning_rate = local_rate});
    }
    algorithm->BeforePush(model, {0, 1});
    core.OnBatchesBegun(std::get<WorkerCore::ComputeBatches>(action).batches);
    const bool pulls = core.TermsOfPush(ShardId{0}).pull;
    const float pushed = model[Arena::kGradient];
    shard.Take(pushed);
    PushReply reply;
    reply.outcome = PushOutcome::kApplied;
    EXPECT_TRUE(core.OnReply(ShardId{0}, reply).ok());
    if (pulls) fetch();
    core.OnBatchesDone();
    made.push_back({pushed, shard.weight(), model[Arena::kWeights]});
  }
  return made;
}

RunSpec SpecOf(uint64_t push_every, uint64_t fetch_every) {
  RunSpec spec;
  spec.worker.algorithm = AlgorithmKind::kDownpour;
  spec.worker.parameters["push_every"] = static_cast<double>(push_every);
  spec.worker.parameters["fetch_every"] = static_cast<double>(fetch_every);
  return spec;
}

// n_push = 1, n_fetch = 2. The gradient is 3 − 10 w / 3, so the worker's first step, at rate 0.1,
// leads it from 0 to −0.3, where the gradient is 4. The shard's η = γ/√ΣΔw² with γ = 0.1 gives −0.1
// · 3/√9 = −0.1, and −0.1 · 4/√25 more: −0.18, which the worker fetches. The gradients there and
// after another step are 3.6 and 4.8.
TEST(DownpourTest, GivesThePublishedFiguresWhereItFetchesWithEverySecondPush) {
  const Pair run = {.spec = SpecOf(1, 2), .local_rate = 0.1, .gradient = [](float weight) {
                      return 3 - 10 * weight / 3;
                    }};

  const std::vector<Pair::Push> pushes = run.Train(4);

  const Pair::Push wanted[] = {{3, -0.1f, -0.3f},
                               {4, -0.18f, -0.18f},
                               {3.6f, -0.238430f, -0.54f},
                               {4.8f, -0.299888f, -0.299888f}};
  for (size_t i = 0; i < pushes.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "push " << i);
    EXPECT_NEAR(pushes[i].gradient, wanted[i].gradient, 1e-5);
    EXPECT_NEAR(pushes[i].shard_weight, wanted[i].shard_weight, 1e-6);
    EXPECT_NEAR(pushes[i].worker_weight, wanted[i].worker_weight, 1e-6);
  }
}

// n_push = 2, n_fetch = 4. The gradient is w, and the rate 0.5, so the worker goes from 8 to 4, 2,
// 1 and 0.5, and pushes 8 + 4 and 2 + 1. The shard goes from 8 to 8 − 0.1 · 12/√144 = 7.9, and
// to 7.9 − 0.1 · 3/√153 = 7.875746.
TEST(DownpourTest, AccruesGradientsOfStepsThatGoOnFromThoseOfTheLastPush) {
  const Pair run = {
      .spec = SpecOf(2, 4), .first_weight = 8, .local_rate = 0.5, .gradient = [](float weight) {
        return weight;
      }};

  const std::vector<Pair::Push> pushes = run.Train(2);

  EXPECT_EQ(pushes[0].gradient, 12);
  EXPECT_NEAR(pushes[0].shard_weight, 7.9f, 1e-6);
  EXPECT_EQ(pushes[0].worker_weight, 2);
  EXPECT_EQ(pushes[1].gradient, 3);
  EXPECT_NEAR(pushes[1].shard_weight, 7.875746f, 1e-6);
  EXPECT_EQ(pushes[1].worker_weight, pushes[1].shard_weight);
}

TEST(DownpourTest, FetchesWithEachPushUnlessToldOtherwise) {
  for (const uint64_t fetch_every : {0, 2}) {
    const Pair run = {.spec = SpecOf(2, fetch_every),
                      .first_weight = 8,
                      .local_rate = 0.5,
                      .gradient = [](float weight) { return weight; }};
    for (const Pair::Push& push : run.Train(3)) EXPECT_EQ(push.worker_weight, push.shard_weight);
  }
}

}  // namespace
}  // namespace slipstream
