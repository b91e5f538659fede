// Runs whose workers push to aggregators.

#include "server/core/coordinator/aggregators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/core/coordinator/coordinator_fixture.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Two servers and two workers, which are the one group.
class CoordinatorAggregatorsTest : public CoordinatorTest {
 protected:
  CoordinatorAggregatorsTest() { spec_.cluster.tree.fanout = 2; }

  absl::Status Report(uint32_t shard, uint64_t instance = 1, const std::string& host = "rack") {
    return ReportSeen(shard, coordinator().orders().number, instance, host);
  }

  absl::Status ReportSeen(uint32_t shard, uint64_t orders_seen, uint64_t instance = 1,
                          const std::string& host = "rack") {
    return coordinator()
        .OnAggregator({.group = 0,
                       .shard = ShardId{shard},
                       .instance = instance,
                       .number = ++number_,
                       .address = host + ":" + std::to_string(shard),
                       .orders_seen = orders_seen},
                      now_)
        .status();
  }

  void ReportAll() {
    for (uint32_t shard = 0; shard < 2; ++shard) ASSERT_TRUE(Report(shard).ok());
  }

  /// Goes to the beginning of training.
  void TrainInATree() {
    Use(spec_);
    Sync();
    ReportAll();
    ada_ = Join();
    bob_ = Join();
    ASSERT_EQ(Prepare(ada_), PreparationState::kGranted);
    ASSERT_EQ(Prepare(bob_), PreparationState::kWait);
    initialized_ = true;
    Sync();
    ReportAll();
    ASSERT_TRUE(coordinator().OnFinishInitialization(ada_, 1, now_).ok());
    ASSERT_EQ(coordinator().phase(), Phase::kTraining);
  }

  RunSpec spec_ = Spec();
  uint64_t number_ = 0;
};

TEST_F(CoordinatorAggregatorsTest, TheRunWaitsForAllOfThem) {
  Use(spec_);
  Sync();
  ASSERT_TRUE(Report(0).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kWaitingForServers);
  const absl::Status early = coordinator().OnRegister({.host = "host"}, now_).status();
  EXPECT_TRUE(absl::IsUnavailable(early)) << early;
  EXPECT_THAT(std::string(early.message()), HasSubstr("aggregator of group 0 for shard 1"));

  ASSERT_TRUE(Report(1).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kWaitingForWorkers);
  EXPECT_EQ(coordinator().UpstreamOf(ShardId{1}), "host:1");
}

TEST_F(CoordinatorAggregatorsTest, TheStartTimeoutNamesThoseThatAreMissing) {
  Use(spec_);
  Sync();
  ASSERT_TRUE(Report(0).ok());
  Pass(absl::Seconds(8), {});
  const auto missing = coordinator().Missing(now_);
  ASSERT_TRUE(missing.has_value());
  EXPECT_THAT(missing->aggregators, ElementsAre(AggregatorId{0, ShardId{1}}));
  EXPECT_EQ(missing->fails_in, absl::Seconds(52));

  Pass(absl::Seconds(53), {});
  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_EQ(coordinator().failure(),
            "not all aggregators came within 1m00s; missing: aggregator of group 0 for shard 1");
}

TEST_F(CoordinatorAggregatorsTest, TrainingBeginsOnceTheyKnowTheMembers) {
  Use(spec_);
  Sync();
  ReportAll();
  ada_ = Join();
  bob_ = Join();
  ASSERT_EQ(Prepare(ada_), PreparationState::kGranted);
  initialized_ = true;
  Sync();
  ASSERT_TRUE(coordinator().OnFinishInitialization(ada_, 1, now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kInitializing);
  ReportAll();
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
}

TEST_F(CoordinatorAggregatorsTest, TheStartTimeoutNamesThoseThatDoNotLearnTheMembers) {
  Use(spec_);
  Sync();
  ReportAll();
  ada_ = Join();
  bob_ = Join();
  const uint64_t orders_before = coordinator().orders().number;
  ASSERT_EQ(Prepare(ada_), PreparationState::kGranted);
  EXPECT_THAT(coordinator().Missing(now_)->workers, ElementsAre(ada_.worker));
  initialized_ = true;
  Sync();
  ASSERT_TRUE(coordinator().OnFinishInitialization(ada_, 1, now_).ok());
  ASSERT_TRUE(Report(0).ok());
  for (int second = 1; second <= 61; ++second) {
    // Ada and Bob are heard, and so is the aggregator of shard 1, which takes no orders.
    ASSERT_TRUE(ReportSeen(1, orders_before).ok());
    const auto missing = coordinator().Missing(now_);
    ASSERT_TRUE(missing.has_value());
    EXPECT_THAT(missing->workers, IsEmpty());
    EXPECT_THAT(missing->aggregators, ElementsAre(AggregatorId{0, ShardId{1}}));
    Pass(absl::Seconds(1),
         second <= 60 ? std::vector<Identity>{ada_, bob_} : std::vector<Identity>{});
  }
  EXPECT_EQ(coordinator().failure(),
            "not all aggregators learned the run's members within 1m00s; missing: aggregator of "
            "group 0 for shard 1");
}

TEST_F(CoordinatorAggregatorsTest, OneThatFallsSilentStopsNothing) {
  TrainInATree();
  Pass(absl::Minutes(5), {ada_, bob_});
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  WorkAllAs(ada_);
  drained_ = true;
  Sync();
  EXPECT_EQ(coordinator().phase(), Phase::kEvaluating);
}

TEST_F(CoordinatorAggregatorsTest, ServersExitOnceThoseThatAreHeardKnowOfTheEnd) {
  TrainInATree();
  ASSERT_TRUE(coordinator().OnLeave(ada_, "disk full", now_, /*ends_run=*/true).ok());
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  Sync();
  EXPECT_FALSE(coordinator().ServersMayStop(now_));
  ASSERT_TRUE(Report(0).ok());
  EXPECT_FALSE(coordinator().ServersMayStop(now_));
  now_ += absl::Seconds(6);  // The other one has died.
  EXPECT_TRUE(coordinator().ServersMayStop(now_));
}

TEST_F(CoordinatorAggregatorsTest, AnotherProcessTakesThePlaceOfOneThatIsSilent) {
  TrainInATree();
  EXPECT_TRUE(absl::IsAlreadyExists(Report(0, /*instance=*/2, "tower")));
  now_ += spec_.cluster.lease;
  EXPECT_TRUE(absl::IsAlreadyExists(Report(0, /*instance=*/2, "tower")));
  now_ += absl::Milliseconds(1);
  EXPECT_TRUE(Report(0, /*instance=*/2, "tower").ok());
  EXPECT_EQ(CountNotes("aggregator replaced"), 1);
}

TEST_F(CoordinatorAggregatorsTest, AnotherProcessAtTheSameAddressTakesItsPlaceAfterAMoment) {
  TrainInATree();
  now_ += Servers::kSilenceAtItsAddress;
  EXPECT_TRUE(absl::IsAlreadyExists(Report(0, /*instance=*/2)));
  now_ += absl::Milliseconds(1);
  EXPECT_TRUE(Report(0, /*instance=*/2).ok());
  EXPECT_EQ(CountNotes("aggregator replaced"), 1);
}

TEST_F(CoordinatorAggregatorsTest, ARestoredCoordinatorKnowsThemThoughTheyAreGone) {
  TrainInATree();
  const std::string bytes = coordinator().Save();
  Use(spec_);
  ASSERT_TRUE(coordinator().Restore(bytes, now_).ok());

  EXPECT_THAT(coordinator().aggregators().AddressesFor(ada_.worker),
              ElementsAre("rack:0", "rack:1"));
  Sync();
  EXPECT_TRUE(coordinator().OnRegister({.host = "host"}, now_).ok());
}

TEST_F(CoordinatorAggregatorsTest, OrdersOfAnotherRunAreRefused) {
  Use(spec_);
  const absl::Status status =
      coordinator()
          .OnAggregator({.instance = 1, .number = 1, .address = "rack:0", .orders_seen = 1000},
                        now_)
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(CountNotes("aggregator refused"), 1);
}

TEST(AggregatorsTest, WorkersOfAGroupGetItsAggregatorsInTheOrderOfShards) {
  ClusterSpec cluster;
  cluster.servers = {"a:1", "b:2"};
  cluster.workers = 5;
  cluster.tree.fanout = 2;
  Aggregators aggregators(cluster);
  const absl::Time now = absl::UnixEpoch();
  for (uint32_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(aggregators
                    .Record({.group = i / 2,
                             .shard = ShardId{i % 2},
                             .instance = 1 + i,
                             .address = "rack:" + std::to_string(i)},
                            now)
                    .ok());
  }
  EXPECT_TRUE(aggregators.AllReported());
  EXPECT_THAT(aggregators.AddressesFor(WorkerId{0}), ElementsAre("rack:0", "rack:1"));
  EXPECT_THAT(aggregators.AddressesFor(WorkerId{3}), ElementsAre("rack:2", "rack:3"));
  EXPECT_THAT(aggregators.AddressesFor(WorkerId{4}), ElementsAre("rack:4", "rack:5"));
  EXPECT_THAT(aggregators.AddressesFor(WorkerId{5}), IsEmpty()) << "it joined later";
}

TEST(AggregatorsTest, TheRunHasNoOthers) {
  ClusterSpec cluster;
  cluster.workers = 2;
  const AggregatorReport report = {.instance = 1, .address = "rack:0"};
  EXPECT_TRUE(
      absl::IsInvalidArgument(Aggregators(cluster).Record(report, absl::UnixEpoch()).status()));
  cluster.tree.fanout = 2;
  AggregatorReport beyond = report;
  beyond.group = 1;
  EXPECT_TRUE(
      absl::IsInvalidArgument(Aggregators(cluster).Record(beyond, absl::UnixEpoch()).status()));
  EXPECT_TRUE(Aggregators(cluster).Record(report, absl::UnixEpoch()).ok());
}

}  // namespace
}  // namespace slipstream
