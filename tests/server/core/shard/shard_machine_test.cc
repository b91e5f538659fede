#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tests/support/shard_machine_driver.h"
#include "tests/support/specs.h"

// Examples of softsync and async rounds and of pulls, beside the random histories of
// shard_property_test.cc, which are checked against a model of the same rules.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using Scaling = OptimizerSpec::StalenessScaling;

PullRequest ReaderPull(uint64_t min_version = 0) {
  return {.shard_map = TestPlan().shard_map, .min_version = Version{min_version}};
}

uint64_t Decided(const ShardMachineDriver& driver) { return Value(driver.core().decided()); }

struct SizeCase {
  uint32_t workers;
  uint32_t n;
  uint32_t c;
};

class SoftsyncSize : public testing::TestWithParam<SizeCase> {};

TEST_P(SoftsyncSize, ClosesWithCGradients) {
  const auto [workers, n, c] = GetParam();
  ShardMachineDriver driver(TestOptions(Softsync(n)));
  driver.Start(FoundingView(workers));
  EXPECT_EQ(driver.core().round_size(), c);

  for (uint32_t push = 1; push < c; ++push) {
    EXPECT_EQ(driver.Push(PushOf(push % workers, 1, 0)).reply.outcome, PushOutcome::kBuffered);
  }
  EXPECT_EQ(Decided(driver), 0u);
  EXPECT_EQ(driver.Push(PushOf(0, 1, 0)).reply.outcome, PushOutcome::kApplied);
  EXPECT_EQ(Decided(driver), 1u);
}

INSTANTIATE_TEST_SUITE_P(Table, SoftsyncSize,
                         testing::Values(SizeCase{4, 1, 4}, SizeCase{4, 2, 2}, SizeCase{4, 4, 1},
                                         SizeCase{5, 2, 2}, SizeCase{3, 2, 1}, SizeCase{1, 1, 1},
                                         SizeCase{2, 4, 1}));

TEST(SoftsyncTest, AnOlderViewIsIgnored) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  View newer = FoundingView(3);
  newer.number = ViewNumber{2};
  driver.Start(newer);

  driver.OnView(FoundingView(1));

  EXPECT_EQ(driver.core().view().members.size(), 3u);
}

TEST(AsyncTest, OneOverSigmaGivesThePublishedSeries) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.optimizer.staleness_scaling = Scaling::kPerGradient;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(3));

  for (uint32_t worker = 0; worker < 3; ++worker) driver.Push(PushOf(worker, 1, 0), 1.0);

  EXPECT_EQ(driver.weights(), (std::vector<double>{0, -1, -2, -2.5}));
  EXPECT_DOUBLE_EQ(driver.core().current_learning_rate(), 1.0);
  EXPECT_DOUBLE_EQ(driver.core().effective_learning_rate(), (1 + 1 + 0.5) / 3);
}

/// The mean staleness of 4 divides the step; as a factor of it where the gradient's size says
/// nothing.
TEST(AsyncTest, OneOverTheMeanScalesTheWholeRound) {
  for (const auto kind : {OptimizerSpec::Kind::kSgd, OptimizerSpec::Kind::kAdam}) {
    ShardMachine::Options options = TestOptions({Policy::kAsync});
    options.optimizer.staleness_scaling = Scaling::kMean;
    options.optimizer.kind = kind;
    ShardMachineDriver driver(options);
    driver.Start(FoundingView(1));
    for (uint64_t sequence = 1; sequence <= 300; ++sequence) {
      driver.Push(PushOf(0, sequence, sequence < 5 ? 0 : sequence - 5), 1.0);
    }

    const bool is_sgd = kind == OptimizerSpec::Kind::kSgd;
    const Update& update = driver.updates().back().update;
    EXPECT_NEAR(update.inverse_divisor, is_sgd ? 0.25 : 1, 1e-6) << is_sgd;
    EXPECT_NEAR(update.step_scale, is_sgd ? 1 : 0.25, 1e-6) << is_sgd;
    EXPECT_NEAR(driver.core().effective_learning_rate(), 0.25, 1e-6) << is_sgd;
  }
}

TEST(ScheduleTest, FollowsTheExamplesApplied) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.optimizer.schedule = {
      .kind = ScheduleSpec::Kind::kStep, .at_epochs = {1.0}, .factor = 0.1};
  options.epochs = 2;
  ShardPlan plan = TestPlan();
  plan.examples_per_epoch = 64;
  ShardMachineDriver driver(options, plan);
  driver.Start(FoundingView(1));

  for (uint64_t sequence = 1; sequence <= 3; ++sequence) driver.Push(PushOf(0, sequence, 0), 1.0);

  EXPECT_NEAR(driver.weights()[2], -2.0, 1e-6);
  EXPECT_NEAR(driver.weights()[3], -2.1, 1e-6);
}

TEST(PullTest, ParksUntilTheInitialWeightsAreThere) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  const CallId call = std::get<Park>(driver.Pull(ReaderPull())).call;

  driver.Start(FoundingView(1));

  EXPECT_EQ(driver.released().at(call).version, Version{0});
}

TEST(PullTest, CancellingACallAlreadyAnsweredChangesNothing) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  const CallId call = std::get<Park>(driver.Pull(ReaderPull(1))).call;
  driver.Push(PushOf(0, 1, 0));
  driver.PublishAll();
  const std::string before = Describe(driver.core());

  driver.Cancel(call);

  EXPECT_EQ(Describe(driver.core()), before);
}

TEST(PullTest, ComesAgainWhenItIsBeforeTheModel) {
  ShardMachine core(TestOptions({Policy::kAsync}));

  const ShardOutput output = core.OnPull(CallId{1}, ReaderPull());

  ASSERT_EQ(output.answers.size(), 1u);
  EXPECT_EQ(output.answers[0].refusal, PullRefusal::kNoModel);
}

TEST(ShardMachineNewestBatchTest, IsThatOfTheNewestGradientOfAnIncarnation) {
  ShardMachineDriver driver(TestOptions({ConsistencySpec::Policy::kAsync}));
  driver.Start(FoundingView(2));
  EXPECT_EQ(driver.core().NewestOf(WorkerId{0}, Incarnation{1}).batch_end, 0u);

  ShardMachine::PushFacts push = PushOf(0, 1, 0);
  push.header.batches = {{6, 2}};
  driver.Push(push);

  EXPECT_EQ(driver.core().NewestOf(WorkerId{0}, Incarnation{1}).batch_end, 8u);
  EXPECT_EQ(driver.core().NewestOf(WorkerId{0}, Incarnation{2}).batch_end, 0u);
  EXPECT_EQ(driver.core().NewestOf(WorkerId{1}, Incarnation{2}).batch_end, 0u);
}

}  // namespace
}  // namespace slipstream
