#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/support/shard_machine_driver.h"
#include "tests/support/specs.h"

// Tests of softsync and async rounds, of pulls, and of the version that each answer carries.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using Scaling = OptimizerSpec::StalenessScaling;

View Smaller(const View& view, size_t members) {
  View smaller = view;
  smaller.number = ViewNumber{Value(view.number) + 1};
  smaller.members.resize(members);
  return smaller;
}

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

TEST(SoftsyncTest, OneWorkerMayGiveSeveral) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(3));

  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    driver.Push(PushOf(1, sequence, 0), static_cast<double>(sequence));
  }

  EXPECT_EQ(driver.LastFolded(), "1 1 1");
  EXPECT_NEAR(driver.weights().back(), -2.0, 1e-6);
}

TEST(SoftsyncTest, FoldsInOrderOfCompletionAsItGoes) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(3));

  driver.Push(PushOf(2, 1, 0));
  EXPECT_EQ(driver.payloads_held(), 0u);
  driver.Push(PushOf(0, 1, 0));
  driver.Push(PushOf(1, 1, 0));

  EXPECT_EQ(driver.LastFolded(), "2 0 1");
}

TEST(SoftsyncTest, ASmallerViewClosesARoundAtOnce) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(4));
  driver.Push(PushOf(3, 1, 0), 1);
  driver.Push(PushOf(0, 1, 0), 3);

  driver.OnView(Smaller(FoundingView(4), 2));

  EXPECT_EQ(Decided(driver), 1u);
  EXPECT_EQ(driver.weights().back(), -2.0);
}

TEST(SoftsyncTest, AnOlderViewIsIgnored) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(Smaller(FoundingView(4), 3));

  driver.OnView(FoundingView(1));

  EXPECT_EQ(driver.core().view().members.size(), 3u);
}

TEST(SoftsyncTest, DrainingClosesWithWhatThereIsDividedByItsCount) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(4));
  driver.Push(PushOf(0, 1, 0), 1);
  driver.Push(PushOf(1, 1, 0), 2);

  driver.OnPhase(Phase::kDraining);

  EXPECT_EQ(driver.weights().back(), -1.5);
  EXPECT_FALSE(driver.core().is_drained());
  driver.PublishAll();
  EXPECT_TRUE(driver.core().is_drained());
}

TEST(SoftsyncTest, NothingJoinsAfterTheDrain) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(2));
  driver.OnPhase(Phase::kDraining);
  EXPECT_TRUE(driver.core().is_drained());

  const PushDecision decision = driver.Push(ExchangeOf(0, 1, 0));

  EXPECT_EQ(decision.reply.outcome, PushOutcome::kDroppedLate);
  EXPECT_EQ(Decided(driver), 0u);
  EXPECT_TRUE(driver.core().is_drained());
}

TEST(SoftsyncTest, CountsStalenessInVersionsDecidedNotPublished) {
  ShardMachineDriver driver(TestOptions(Softsync(2)));
  driver.Start(FoundingView(2));
  driver.Push(PushOf(0, 1, 0));
  driver.Push(PushOf(0, 2, 0));

  const PushReply reply = driver.Push(PushOf(1, 1, 0)).reply;

  EXPECT_EQ(driver.core().published(), Version{0});
  EXPECT_EQ(reply.version, Version{3});
  EXPECT_EQ(reply.staleness, 2u);
  EXPECT_EQ(driver.core().lag().vector_clocks().back().mean_staleness, 2.0);
}

TEST(SoftsyncTest, ABufferedExchangeIsAnsweredWithTheVersionDecidedAtItsPush) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(2));
  driver.Push(PushOf(0, 1, 0));
  driver.Push(PushOf(1, 1, 0));  // Decides version 1, which is not published yet.

  const PushDecision buffered = driver.Push(ExchangeOf(0, 2, 0));
  const PushDecision applied = driver.Push(ExchangeOf(1, 2, 0));

  EXPECT_EQ(buffered.reply.outcome, PushOutcome::kBuffered);
  EXPECT_EQ(buffered.reply.version, Version{2});
  EXPECT_EQ(applied.reply.outcome, PushOutcome::kApplied);
  driver.PublishNext();
  EXPECT_EQ(driver.released().at(std::get<Park>(*buffered.answer).call).version, Version{1});
  EXPECT_FALSE(driver.released().contains(std::get<Park>(*applied.answer).call));
  driver.PublishNext();
  EXPECT_EQ(driver.released().at(std::get<Park>(*applied.answer).call).version, Version{2});
}

TEST(SoftsyncTest, ABufferedExchangeIsServedAtOnceWhenItsVersionIsPublished) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(2));

  const PushDecision decision = driver.Push(ExchangeOf(0, 1, 0));

  ASSERT_TRUE(decision.answer.has_value());
  EXPECT_EQ(std::get<Serve>(*decision.answer).version, Version{0});
  EXPECT_EQ(std::get<Serve>(*decision.answer).work, std::nullopt);
}

TEST(SoftsyncTest, ARepetitionIsAnsweredAsTheFirstTimeAndCountsOnce) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(3));
  const PushReply first = driver.Push(PushOf(0, 1, 0)).reply;
  const uint64_t bytes = driver.core().bytes_queued();

  for (int repetition = 0; repetition < 5; ++repetition) {
    const PushDecision again = driver.Push(PushOf(0, 1, 0));
    PushReply expected = first;
    expected.first_outcome = std::exchange(expected.outcome, PushOutcome::kDuplicate);
    EXPECT_EQ(again.reply, expected);
    EXPECT_FALSE(again.took_effect);
    EXPECT_FALSE(again.retained);
  }

  EXPECT_EQ(driver.core().round().contributions(), 1u);
  EXPECT_EQ(driver.core().lag().gradients(), 1u);
  EXPECT_EQ(driver.core().bytes_queued(), bytes);
}

TEST(AsyncTest, EveryGradientIsAnUpdate) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(3));

  for (uint32_t worker = 0; worker < 3; ++worker) driver.Push(PushOf(worker, 1, 0), worker + 1.0);

  EXPECT_EQ(driver.weights(), (std::vector<double>{0, -1, -3, -6}));
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

TEST(AsyncTest, OneOverTheMeanScalesTheWholeRound) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.optimizer.staleness_scaling = Scaling::kMean;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(1));
  for (uint64_t sequence = 1; sequence <= 300; ++sequence) {
    driver.Push(PushOf(0, sequence, sequence < 5 ? 0 : sequence - 5), 1.0);
  }

  const std::vector<double>& weights = driver.weights();
  EXPECT_NEAR(weights[300] - weights[299], -0.25, 1e-6);  // ⟨σ⟩ = 4.
  EXPECT_NEAR(driver.core().effective_learning_rate(), 0.25, 1e-6);
}

TEST(AsyncTest, OneOverTheMeanScalesTheStepWhereTheGradientsSizeSaysNothing) {
  ShardMachine::Options options = TestOptions({Policy::kAsync});
  options.optimizer.staleness_scaling = Scaling::kMean;
  options.optimizer.kind = OptimizerSpec::Kind::kAdam;
  ShardMachineDriver driver(options);
  driver.Start(FoundingView(1));
  for (uint64_t sequence = 1; sequence <= 300; ++sequence) {
    driver.Push(PushOf(0, sequence, sequence < 5 ? 0 : sequence - 5), 1.0);
  }

  EXPECT_NEAR(driver.updates().back().update.step_scale, 0.25, 1e-6);  // ⟨σ⟩ = 4.
  EXPECT_EQ(driver.updates().back().update.inverse_divisor, 1.0f);
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

TEST(PullTest, IsServedAtOnceFromThePublishedVersion) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  driver.Push(PushOf(0, 1, 0));

  EXPECT_EQ(std::get<Serve>(driver.Pull(ReaderPull())).version, Version{0});
  driver.PublishAll();
  EXPECT_EQ(std::get<Serve>(driver.Pull(ReaderPull(1))).version, Version{1});
}

TEST(PullTest, TellsReadersHowManyExamplesTheVersionHasLearntFrom) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  driver.Push(PushOf(0, 1, 0));
  driver.Push(PushOf(0, 2, 0));
  const uint64_t of_one = driver.core().examples_applied() / 2;
  ASSERT_GT(of_one, 0u);

  EXPECT_EQ(std::get<Serve>(driver.Pull(ReaderPull())).examples, 0u);
  driver.PublishNext();
  EXPECT_EQ(std::get<Serve>(driver.Pull(ReaderPull(1))).examples, of_one);
  driver.PublishNext();
  EXPECT_EQ(std::get<Serve>(driver.Pull(ReaderPull(2))).examples, 2 * of_one);
}

TEST(PullTest, ParksUntilItsVersionIsPublished) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  const CallId call = std::get<Park>(driver.Pull(ReaderPull(2))).call;

  driver.Push(PushOf(0, 1, 0));
  driver.Push(PushOf(0, 2, 0));
  driver.PublishNext();
  EXPECT_FALSE(driver.released().contains(call));
  driver.PublishNext();

  EXPECT_EQ(driver.released().at(call).version, Version{2});
  EXPECT_EQ(driver.core().waiting(), 0u);
}

TEST(PullTest, ParksUntilTheInitialWeightsAreThere) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  const CallId call = std::get<Park>(driver.Pull(ReaderPull())).call;

  driver.Start(FoundingView(1));

  EXPECT_EQ(driver.released().at(call).version, Version{0});
}

TEST(PullTest, IsNotAnsweredOnceCancelled) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  const CallId call = std::get<Park>(driver.Pull(ReaderPull(1))).call;

  driver.Cancel(call);
  driver.Push(PushOf(0, 1, 0));
  driver.PublishAll();

  EXPECT_FALSE(driver.released().contains(call));
  EXPECT_EQ(driver.core().waiting(), 0u);
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

TEST(PullTest, IsReleasedWhenNothingMoreComes) {
  ShardMachineDriver driver(TestOptions({Policy::kSoftsync}));
  driver.Start(FoundingView(2));
  const CallId call = std::get<Park>(driver.Pull(ReaderPull(9))).call;
  driver.Push(PushOf(0, 1, 0));

  driver.OnPhase(Phase::kDraining);
  EXPECT_FALSE(driver.released().contains(call));
  driver.PublishAll();

  EXPECT_EQ(driver.released().at(call).version, Version{1});
}

TEST(PullTest, ReadersHoldABoundedNumberOfVersions) {
  ShardMachineDriver driver(TestOptions({Policy::kAsync}));
  driver.Start(FoundingView(1));
  ShardMachine& core = driver.core();
  const auto is_answered = [&core](uint64_t call, const PullRequest& request) {
    return !core.OnPull(CallId{call}, request).answers.empty();
  };
  ASSERT_TRUE(is_answered(1, ReaderPull()));
  ASSERT_TRUE(is_answered(11, ReaderPull())) << "readers of one version share it";
  driver.Push(PushOf(0, 1, 0));
  driver.PublishAll();
  ASSERT_TRUE(is_answered(2, ReaderPull()));
  driver.Push(PushOf(0, 2, 1));
  driver.PublishAll();

  ASSERT_FALSE(is_answered(3, ReaderPull()));
  PullRequest of_member = ReaderPull();
  of_member.identity = PushOf(0, 1, 0).header.identity;
  EXPECT_TRUE(is_answered(4, of_member)) << "members have their own";
  EXPECT_FALSE(is_answered(5, of_member)) << "one at a time";
  EXPECT_EQ(core.pulls_under_way(), 4u);
  EXPECT_TRUE(core.ReadersWaitForPlace());

  ASSERT_TRUE(core.OnPullDone(CallId{1}, std::nullopt).answers.empty());
  const ShardOutput output = core.OnPullDone(CallId{11}, std::nullopt);
  ASSERT_EQ(output.answers.size(), 1u);
  EXPECT_EQ(output.answers[0].call, CallId{3});
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
