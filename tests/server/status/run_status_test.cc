#include "server/status/run_status.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/philox.h"
#include "server/status/run_stage_wire.h"
#include "server/status/shard_report.h"
#include "tests/support/shard_machine_driver.h"

namespace slipstream {
namespace {

/// Returns the figures that a shard would report for these values of σ.
v1::ShardStatus ShardOf(uint32_t id, const std::vector<uint64_t>& sigmas) {
  v1::ShardStatus shard;
  shard.set_shard(id);
  v1::StalenessStatus& staleness = *shard.mutable_staleness();
  double sum = 0;
  for (uint64_t sigma : sigmas) {
    const auto bucket = static_cast<int>(std::min<uint64_t>(sigma, LagTracker::kBuckets - 1));
    while (staleness.histogram_size() <= bucket) staleness.add_histogram(0);
    staleness.set_histogram(bucket, staleness.histogram(bucket) + 1);
    staleness.set_max(std::max(staleness.max(), sigma));
    sum += static_cast<double>(sigma);
  }
  staleness.set_count(sigmas.size());
  if (!sigmas.empty()) staleness.set_mean(sum / static_cast<double>(sigmas.size()));
  return shard;
}

uint64_t NaivePercentile(std::vector<uint64_t> sigmas, double share) {
  std::sort(sigmas.begin(), sigmas.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sigmas.size())));
  return sigmas.at(rank - 1);
}

TEST(MergeStalenessTest, EqualsTheFiguresOfAllPushesTogether) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    std::vector<v1::ShardStatus> shards;
    std::vector<uint64_t> all;
    const uint32_t count = 1 + random.Below(4);
    for (uint32_t id = 0; id < count; ++id) {
      std::vector<uint64_t> sigmas(random.Below(50));
      for (uint64_t& sigma : sigmas) sigma = random.Below(1 + random.Below(30));
      shards.push_back(ShardOf(id, sigmas));
      all.insert(all.end(), sigmas.begin(), sigmas.end());
    }

    const v1::StalenessStatus merged = MergeStaleness(shards);

    ASSERT_EQ(merged.count(), all.size());
    if (all.empty()) continue;
    const v1::ShardStatus together = ShardOf(0, all);
    const v1::StalenessStatus& expected = together.staleness();
    EXPECT_EQ(merged.max(), expected.max());
    EXPECT_NEAR(merged.mean(), expected.mean(), 1e-9);
    EXPECT_EQ(merged.p50(), NaivePercentile(all, 0.5));
    EXPECT_EQ(merged.p99(), NaivePercentile(all, 0.99));
    EXPECT_TRUE(std::equal(merged.histogram().begin(), merged.histogram().end(),
                           expected.histogram().begin(), expected.histogram().end()));
  }
}

TEST(MergeStalenessTest, PercentilesBeyondTheHistogramAreTheLargestSeen) {
  const std::vector<v1::ShardStatus> shards = {ShardOf(0, {1022, 1022}), ShardOf(1, {5000, 2000})};

  EXPECT_EQ(MergeStaleness(shards).p50(), 1022u);
  EXPECT_EQ(MergeStaleness(shards).p99(), 5000u);
}

TEST(MergeStatusTest, CountsWorkerStepsByTheGradientsOfShardZero) {
  StatusFacts facts;
  facts.shards = {ShardOf(0, {0, 1}), ShardOf(1, {2})};
  (*facts.shards[0].mutable_outcomes())["APPLIED"] = 5;
  (*facts.shards[0].mutable_outcomes())["TOO_STALE"] = 100;
  facts.shards[0].set_version(12);
  facts.shards[1].set_version(9);
  facts.shards[0].set_examples_applied(600);
  facts.training_time = absl::Seconds(3);

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  EXPECT_EQ(status.pushes(), 2u) << "excuses are answered, too, but are no steps";
  EXPECT_EQ(status.updates(), 12u);
  EXPECT_EQ(status.staleness().count(), 3u);
  EXPECT_DOUBLE_EQ(status.examples_per_second(), 200);
}

TEST(MergeStatusTest, CountsGradientsThatJoinedARoundButNoExcuses) {
  ShardMachineDriver driver(TestOptions({ConsistencySpec::Policy::kHardsync}));
  driver.Start(FoundingView(2));
  driver.Push(PushOf(0, 1, 0));
  driver.Push(PushOf(1, 1, 0));
  driver.Push(PushOf(0, 2, 1));
  driver.Push(ExcuseOf(1, 2, 1));
  StatusFacts facts;
  facts.shards = {DescribeShard(driver.core())};
  for (uint32_t id = 0; id < 2; ++id) facts.workers.try_emplace(WorkerId{id});

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  EXPECT_EQ(status.pushes(), 3u);
  ASSERT_EQ(status.workers_size(), 2);
  EXPECT_EQ(status.workers(0).pushes(), 2u);
  EXPECT_EQ(status.workers(1).pushes(), 1u);
}

TEST(DescribeShardTest, HasALineForAMemberWhoseOnlyGradientWasDropped) {
  ConsistencySpec consistency = {.policy = ConsistencySpec::Policy::kAsync};
  consistency.max_staleness.action = StalenessGuardSpec::Action::kDrop;
  ShardMachineDriver driver(TestOptions(consistency));
  driver.Start(FoundingView(2));
  driver.Push(PushOf(0, 1, 0));
  ShardMachine::PushFacts stale = PushOf(1, 1, 0);
  ASSERT_EQ(driver.Push(stale).reply.outcome, PushOutcome::kDroppedLate);

  const v1::ShardStatus status = DescribeShard(driver.core());

  ASSERT_EQ(status.workers_size(), 2);
  EXPECT_EQ(status.workers(0).pushes(), 1u);
  const v1::ShardWorkerStatus& line = status.workers(1);
  EXPECT_EQ(line.worker(), 1u);
  EXPECT_EQ(line.pushes(), 0u);
  EXPECT_EQ(line.mean_staleness(), 0);
  EXPECT_EQ(line.incarnation(), 2u);
  EXPECT_EQ(line.last_sequence(), 1u);
}

TEST(DescribeShardTest, HasALineForWhoLeftAndForWhoHasNotPushed) {
  ShardMachineDriver driver(TestOptions({ConsistencySpec::Policy::kAsync}));
  driver.Start(FoundingView(2));
  driver.Push(PushOf(0, 1, 0));
  View view = FoundingView(2);
  view.number = ViewNumber{2};
  view.members.erase(view.members.begin());
  driver.OnView(view);
  StepTimes steps;
  steps.OnView(view, absl::UnixEpoch());
  steps.OnServed(WorkerId{1}, Version{1}, absl::UnixEpoch());

  v1::ShardStatus status = DescribeShard(driver.core());
  DescribeTimes({}, steps, absl::UnixEpoch() + absl::Seconds(3), status);

  ASSERT_EQ(status.workers_size(), 2);
  EXPECT_EQ(status.workers(0).pushes(), 1u);
  EXPECT_EQ(status.workers(0).incarnation(), 0u) << "it is no member";
  EXPECT_EQ(status.workers(1).pushes(), 0u);
  EXPECT_EQ(status.workers(1).incarnation(), 2u);
  EXPECT_DOUBLE_EQ(status.workers(1).holding_seconds(), 3);
}

/// Returns a worker whose last steps had this many examples and this mean loss.
StatusFacts::Worker WorkerWith(Membership::State state, uint64_t examples, double loss) {
  StatusFacts::Worker worker;
  worker.record.state = state;
  worker.heartbeat.set_recent_examples(examples);
  worker.heartbeat.set_train_loss(loss);
  return worker;
}

TEST(MergeStatusTest, TellsWhichWorkersATestSlows) {
  RunSpec spec;
  spec.testing.workers = {{}, {.delay = absl::Milliseconds(20), .slower = 1}};
  StatusFacts facts;
  for (uint32_t id = 0; id < 3; ++id) facts.workers.try_emplace(WorkerId{id});

  const v1::RunStatus status = MergeStatus(spec, facts);

  ASSERT_EQ(status.workers_size(), 3);
  EXPECT_EQ(status.workers(0).slowdown(), "");
  EXPECT_EQ(status.workers(1).slowdown(), "a mini-batch takes 20.0 ms longer");
  EXPECT_EQ(status.workers(2).slowdown(), "");
}

TEST(MergeStatusTest, TellsHowOftenCheckpointsAreDue) {
  StatusFacts facts;
  RunSpec spec;
  EXPECT_EQ(MergeStatus(spec, facts).checkpoint_interval_seconds(), 0);

  spec.durability.level = DurabilitySpec::Level::kCheckpoint;
  spec.durability.interval = absl::Milliseconds(2500);
  EXPECT_EQ(MergeStatus(spec, facts).checkpoint_interval_seconds(), 2.5);
}

TEST(MergeStatusTest, WeighsLossAndAccuracyByTheExamplesTheyAreOf) {
  StatusFacts facts;
  facts.workers[WorkerId{0}] = WorkerWith(Membership::State::kLive, 100, 1);
  facts.workers[WorkerId{0}].heartbeat.set_examples(1'000'000);
  facts.workers[WorkerId{0}].heartbeat.set_train_accuracy(0.5);
  facts.workers[WorkerId{1}] = WorkerWith(Membership::State::kLive, 300, 2);
  facts.workers[WorkerId{1}].heartbeat.set_train_accuracy(0.9);
  facts.workers[WorkerId{2}] = WorkerWith(Membership::State::kLive, 0, std::nan(""));

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  EXPECT_DOUBLE_EQ(status.train_loss(), 1.75);
  EXPECT_DOUBLE_EQ(status.train_accuracy(), 0.8);
}

TEST(MergeStatusTest, ForgetsTheLossOfWorkersThatAreGoneUnlessNoOtherHasOne) {
  StatusFacts facts;
  facts.workers[WorkerId{0}] = WorkerWith(Membership::State::kLive, 100, 1);
  facts.workers[WorkerId{1}] = WorkerWith(Membership::State::kDead, 100, 9);
  facts.workers[WorkerId{2}] = WorkerWith(Membership::State::kLeft, 100, 5);
  EXPECT_DOUBLE_EQ(MergeStatus(RunSpec{}, facts).train_loss(), 1);

  facts.workers[WorkerId{0}] = WorkerWith(Membership::State::kLive, 0, 0);
  EXPECT_DOUBLE_EQ(MergeStatus(RunSpec{}, facts).train_loss(), 7) << "it has only come back";

  facts.workers[WorkerId{0}].record.state = Membership::State::kDead;
  EXPECT_DOUBLE_EQ(MergeStatus(RunSpec{}, facts).train_loss(), 7);
}

TEST(MergeStatusTest, HasNoAccuracyWhereWorkersReportNone) {
  StatusFacts facts;
  facts.workers[WorkerId{0}] = WorkerWith(Membership::State::kLive, 100, 1);
  facts.evaluations.push_back({.number = 7, .test_loss = 0.5});

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  EXPECT_DOUBLE_EQ(status.train_loss(), 1);
  EXPECT_FALSE(status.has_train_accuracy());
  EXPECT_FALSE(status.workers(0).has_train_accuracy());
  ASSERT_EQ(status.evaluations_size(), 1);
  EXPECT_EQ(status.evaluations(0).number(), 7u);
  EXPECT_FALSE(status.evaluations(0).has_test_accuracy());
}

TEST(MergeStatusTest, AWorkersStalenessIsTheMeanOverItsPushesToAllShards) {
  StatusFacts facts;
  facts.workers[WorkerId{4}].record.state = Membership::State::kDead;
  facts.shards.resize(2);
  for (int shard = 0; shard < 2; ++shard) {
    v1::ShardWorkerStatus& worker = *facts.shards[static_cast<size_t>(shard)].add_workers();
    worker.set_worker(4);
    worker.set_pushes(shard == 0 ? 1 : 3);
    worker.set_mean_staleness(shard == 0 ? 4 : 2);
    worker.set_last_staleness(shard == 0 ? 4 : 1);
  }

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  ASSERT_EQ(status.workers_size(), 1);
  EXPECT_EQ(status.workers(0).state(), "dead");
  EXPECT_DOUBLE_EQ(status.workers(0).mean_staleness(), 2.5);
  EXPECT_EQ(status.workers(0).last_staleness(), 4u);
}

TEST(MergeStalenessTest, HasTheDistributionBesideTheHistogram) {
  const v1::StalenessStatus merged = MergeStaleness({ShardOf(0, {0, 1, 1}), ShardOf(1, {3})});

  ASSERT_EQ(merged.cdf_size(), merged.histogram_size());
  const std::vector<double> cdf(merged.cdf().begin(), merged.cdf().end());
  EXPECT_EQ(cdf, (std::vector<double>{0.25, 0.75, 0.75, 1.0}));
  EXPECT_EQ(MergeStaleness({}).cdf_size(), 0);
}

TEST(MergeStatusTest, AddsUpRefusalsByReason) {
  StatusFacts facts;
  facts.shards.resize(2);
  (*facts.shards[0].mutable_outcomes())["APPLIED"] = 5;
  (*facts.shards[0].mutable_outcomes())["DROPPED_LATE"] = 2;
  (*facts.shards[0].mutable_outcomes())["NONFINITE"] = 1;
  (*facts.shards[1].mutable_outcomes())["NONFINITE"] = 2;
  (*facts.shards[1].mutable_outcomes())["RETRY_LATER"] = 7;

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  EXPECT_EQ(status.refusals_size(), 2);
  EXPECT_EQ(status.refusals().at("NONFINITE"), 3u);
  EXPECT_EQ(status.refusals().at("RETRY_LATER"), 7u);
}

/// Returns a run that trains, whose workers are live and have work, and whose one shard knows their
/// paces.
StatusFacts Training(uint32_t workers) {
  StatusFacts facts;
  facts.phase = Phase::kTraining;
  facts.live_workers = workers;
  facts.shards.resize(1);
  facts.shards[0].set_round_size(workers);
  facts.shards[0].set_version(6);
  for (uint32_t id = 0; id < workers; ++id) {
    StatusFacts::Worker& worker = facts.workers[WorkerId{id}];
    worker.lease_left = absl::Milliseconds(4000 - 100 * id);
    worker.has_work = true;
    v1::ShardWorkerStatus& line = *facts.shards[0].add_workers();
    line.set_worker(id);
    line.set_steps(50);
    line.set_step_seconds(0.1);
  }
  return facts;
}

TEST(MergeStatusTest, MarksStragglers) {
  StatusFacts facts = Training(3);
  facts.shards[0].mutable_workers(2)->set_step_seconds(0.5);

  v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  EXPECT_FALSE(status.workers(0).is_straggler());
  EXPECT_TRUE(status.workers(2).is_straggler());
  EXPECT_EQ(status.workers(2).straggler_reason(),
            "its steps take 500 ms, 5.0 times the median of 100 ms");
  EXPECT_DOUBLE_EQ(status.workers(2).step_seconds(), 0.5);
  facts.phase = Phase::kDraining;
  EXPECT_FALSE(MergeStatus(RunSpec{}, facts).workers(2).is_straggler());
  facts.phase = Phase::kTraining;
  facts.workers[WorkerId{2}].record.state = Membership::State::kDead;
  EXPECT_FALSE(MergeStatus(RunSpec{}, facts).workers(2).is_straggler());
}

TEST(MergeStatusTest, AStepBeginsWithTheLastOfTheShardsAnswers) {
  StatusFacts facts = Training(3);
  facts.shards.push_back(facts.shards[0]);
  // Worker 2 waits for shard 1, which has not answered it yet. Worker 1 has both shards' answers.
  facts.shards[0].mutable_workers(2)->set_step_seconds(0.5);
  facts.shards[0].mutable_workers(2)->set_holding_seconds(10);
  facts.shards[0].mutable_workers(1)->set_holding_seconds(10);
  facts.shards[1].mutable_workers(1)->set_holding_seconds(4);

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  EXPECT_DOUBLE_EQ(status.workers(2).step_seconds(), 0.1);
  EXPECT_DOUBLE_EQ(status.workers(2).holding_seconds(), 0);
  EXPECT_FALSE(status.workers(2).is_straggler());
  EXPECT_DOUBLE_EQ(status.workers(1).holding_seconds(), 4);
  EXPECT_TRUE(status.workers(1).is_straggler());
}

TEST(MergeStatusTest, SilenceIsGuiltOfThoseWhoOweAGradient) {
  StatusFacts facts = Training(3);
  facts.shards[0].mutable_workers(2)->set_holding_seconds(10);
  EXPECT_TRUE(MergeStatus(RunSpec{}, facts).workers(2).is_straggler());

  facts.workers[WorkerId{2}].has_work = false;
  EXPECT_FALSE(MergeStatus(RunSpec{}, facts).workers(2).is_straggler());

  facts.shards[0].add_waiting_for(2);
  EXPECT_TRUE(MergeStatus(RunSpec{}, facts).workers(2).is_straggler());
}

TEST(MergeStatusTest, TellsOfASynchronousRoundThatWaits) {
  RunSpec spec;
  spec.consistency.policy = ConsistencySpec::Policy::kHardsync;
  StatusFacts facts = Training(4);
  facts.shards[0].set_round_contributions(3);
  facts.shards[0].add_waiting_for(3);
  facts.shards[0].set_round_open_seconds(1.5);
  facts.shards[0].set_round_unchanged_seconds(1.25);
  facts.shards[0].set_silent_seconds(0.25);

  const v1::RunStatus status = MergeStatus(spec, facts);

  ASSERT_EQ(status.waiting_rounds_size(), 1);
  const v1::WaitingRound& round = status.waiting_rounds(0);
  EXPECT_EQ(round.version(), 7u);
  EXPECT_DOUBLE_EQ(round.open_seconds(), 1.75);
  EXPECT_DOUBLE_EQ(round.unchanged_seconds(), 1.5);
  ASSERT_EQ(round.waiting_for_size(), 1);
  EXPECT_EQ(round.waiting_for(0), 3u);
  EXPECT_EQ(round.gradients_missing(), 0u);
  EXPECT_EQ(round.outlook(),
            "closes when worker 3 pushes; without a word from worker 3 its lease ends in 3.7 s, "
            "and the round closes without it");
}

TEST(MergeStatusTest, TellsWhatARoundOfAnybodysGradientsLacks) {
  StatusFacts facts = Training(4);
  facts.shards[0].set_round_contributions(1);
  facts.shards[0].set_round_gradients_missing(3);

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  ASSERT_EQ(status.waiting_rounds_size(), 1);
  EXPECT_EQ(status.waiting_rounds(0).gradients_missing(), 3u);
  EXPECT_EQ(status.waiting_rounds(0).outlook(),
            "closes with 3 more gradients, from whichever of 4 live workers");
}

TEST(MergeStatusTest, AnEmptyRoundWaitsOnlyIfNobodyComesForASecond) {
  StatusFacts facts = Training(4);
  facts.shards[0].set_round_unchanged_seconds(0.9);
  EXPECT_EQ(MergeStatus(RunSpec{}, facts).waiting_rounds_size(), 0);

  facts.shards[0].set_round_unchanged_seconds(1.1);
  EXPECT_EQ(MergeStatus(RunSpec{}, facts).waiting_rounds_size(), 1);

  facts.phase = Phase::kEvaluating;
  EXPECT_EQ(MergeStatus(RunSpec{}, facts).waiting_rounds_size(), 0);
}

TEST(MergeStatusTest, TellsTheRoundSizeOfTheRunNotOfWhoIsLeft) {
  RunSpec spec;
  spec.consistency.policy = ConsistencySpec::Policy::kHardsync;
  spec.cluster.workers = 4;
  StatusFacts facts;
  facts.stages = StagesOf(spec);
  facts.live_workers = 3;

  EXPECT_EQ(MergeStatus(spec, facts).round_size(), 4u);
}

TEST(MergeStatusTest, TellsThePolicyOfTheStageAndAllStages) {
  StatusFacts facts;
  facts.stages = {{.consistency = {.policy = PolicyKind::kAsync}, .learning_rate = 0.5},
                  {.consistency = {.policy = PolicyKind::kSsp},
                   .learning_rate = 0.25,
                   .until_epoch = 7,
                   .begins_at_once = true}};
  facts.stages[1].consistency.parameters["slack"] = 4;
  facts.stage = 1;

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  EXPECT_EQ(status.policy(), "ssp");
  ASSERT_EQ(status.policy_parameters_size(), 1);
  EXPECT_EQ(status.policy_parameters(0).value(), 4);
  EXPECT_EQ(status.stage(), 1u);
  ASSERT_EQ(status.stages_size(), 2);
  const auto stages = FromWire(status.stages());
  ASSERT_TRUE(stages.ok()) << stages.status();
  EXPECT_EQ(*stages, facts.stages);
}

TEST(MergeStatusTest, TellsWhyAWorkerIsDead) {
  StatusFacts facts;
  facts.workers[WorkerId{0}].record.state = Membership::State::kDead;
  facts.workers[WorkerId{0}].record.failure = "unheard of";

  EXPECT_EQ(MergeStatus(RunSpec{}, facts).workers(0).failure(), "unheard of");
}

TEST(MergeStatusTest, NamesMissingServersByTheAddressTheySaidOrElseTheConfigured) {
  RunSpec spec;
  spec.cluster.servers = {"a:1", "b:2", "c:3"};
  StatusFacts facts;
  facts.shards = {ShardOf(0, {}), ShardOf(1, {})};
  facts.shards[1].set_address("10.0.0.2:7071");
  EXPECT_FALSE(MergeStatus(spec, facts).has_missing());
  facts.missing = MissingMembers{.shards = {ShardId{1}, ShardId{2}},
                                 .workers = {},
                                 .aggregators = {},
                                 .fails_in = absl::Seconds(9)};

  const v1::RunStatus status = MergeStatus(spec, facts);

  ASSERT_EQ(status.missing().servers_size(), 2);
  EXPECT_EQ(status.missing().servers(0).address(), "10.0.0.2:7071");
  EXPECT_EQ(status.missing().servers(1).shard(), 2u);
  EXPECT_EQ(status.missing().servers(1).address(), "c:3");
  EXPECT_DOUBLE_EQ(status.missing().fails_in_seconds(), 9);
}

TEST(MergeStatusTest, NamesMissingAggregators) {
  StatusFacts facts;
  facts.missing = MissingMembers{.shards = {},
                                 .workers = {},
                                 .aggregators = {{.group = 2, .shard = ShardId{1}}},
                                 .fails_in = absl::Seconds(9)};

  const v1::RunStatus status = MergeStatus(RunSpec{}, facts);

  ASSERT_EQ(status.missing().aggregators_size(), 1);
  EXPECT_EQ(status.missing().aggregators(0).group(), 2u);
  EXPECT_EQ(status.missing().aggregators(0).shard(), 1u);
  EXPECT_DOUBLE_EQ(status.missing().fails_in_seconds(), 9);
}

TEST(MergeStatusTest, TellsTheBoundsOfTheRun) {
  RunSpec spec;
  spec.training.epochs = 7;
  spec.training.max_seconds = 12.5;

  const v1::RunStatus status = MergeStatus(spec, {});

  EXPECT_EQ(status.epochs_total(), 7u);
  EXPECT_DOUBLE_EQ(status.seconds_max(), 12.5);
}

}  // namespace
}  // namespace slipstream
