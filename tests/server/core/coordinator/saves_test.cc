#include "server/core/coordinator/saves.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/server/core/coordinator/generations_fixture.h"

// Tests of when shards are told to save their state, and which state all have.

namespace slipstream {
namespace {

class SavesTest : public testing::Test {
 protected:
  static constexpr absl::Duration kInterval = absl::Seconds(10);

  SavesTest() {
    for (uint32_t shard = 0; shard < 2; ++shard) Report(shard, 0);
    Ask(true);
  }

  void Report(uint32_t shard, uint64_t version, std::vector<SavedVersion> saved = {}) {
    const ServerReport report = {.shard = ShardId{shard},
                                 .instance = 1,
                                 .number = ++reports_,
                                 .address = "host:1",
                                 .orders_seen = orders_,
                                 .initialized = true,
                                 .saved = std::move(saved),
                                 .cannot_save = cannot_save_,
                                 .version = Version{version}};
    ASSERT_TRUE(servers_.Record(report, now_).ok());
    saves_.OnReport(servers_, report.shard, in_step_);
  }

  void ReportAll(uint64_t version, const std::vector<SavedVersion>& saved = {}) {
    for (uint32_t shard = 0; shard < 2; ++shard) Report(shard, version, saved);
  }

  /// Asks for the next order, and returns its version if one was given.
  std::optional<uint64_t> Ask(bool in_step) {
    in_step_ = in_step;
    const uint64_t number = saves_.order().number;
    saves_.OrderIfDue(servers_, in_step, now_);
    if (saves_.order().number == number) return std::nullopt;
    EXPECT_EQ(saves_.order().number, number + 1);
    saves_.OnAnnounced(++orders_);
    return Value(saves_.order().version);
  }

  /// Version 330 is ordered, and the shards learn of it at version 320.
  void OrderVersion330() {
    ReportAll(300);
    now_ += kInterval;
    ASSERT_EQ(Ask(true), 330u);
    ReportAll(320);
  }

  absl::Time now_ = absl::UnixEpoch();
  Servers servers_{2, absl::Seconds(5)};
  Saves saves_{kInterval, 2};
  uint64_t reports_ = 0;
  uint64_t orders_ = 1;
  bool in_step_ = true;
  bool cannot_save_ = false;
};

TEST_F(SavesTest, TheFirstOrderComesAfterAnInterval) {
  now_ += kInterval - absl::Milliseconds(1);
  EXPECT_EQ(Ask(true), std::nullopt);

  now_ += absl::Milliseconds(1);
  EXPECT_EQ(Ask(true), Saves::kMarginMin);
}

TEST_F(SavesTest, InStepTheVersionLiesAboutASecondAheadOfTheFirstShard) {
  Report(0, 299);
  Report(1, 300);
  now_ += kInterval;

  EXPECT_EQ(Ask(true), 330u);
}

TEST_F(SavesTest, InStepTheNextOrderWaitsUntilAllHaveSavedTheLast) {
  OrderVersion330();
  now_ += 2 * kInterval;
  EXPECT_EQ(Ask(true), std::nullopt) << "they have not come so far";

  Report(0, 340, {Saved(330)});
  Report(1, 330);
  EXPECT_EQ(Ask(true), std::nullopt);
  Report(1, 340, {Saved(330)});
  EXPECT_TRUE(Ask(true).has_value());
}

TEST_F(SavesTest, AShardThatHeardTooLateDoublesTheMarginOfTheNextOrder) {
  ReportAll(300);
  now_ += kInterval;
  ASSERT_EQ(Ask(true), 330u);
  ReportAll(331);
  ReportAll(600);
  now_ += kInterval;
  EXPECT_EQ(Ask(true), 660u);
  ReportAll(661);
  ReportAll(900);
  now_ += kInterval;
  EXPECT_EQ(Ask(true), 1020u);

  ReportAll(1000);
  ReportAll(1200, {Saved(1020)});
  now_ += kInterval;
  EXPECT_EQ(Ask(true), 1230u) << "the margin is a second again";
}

TEST_F(SavesTest, TheMarginHasABound) {
  uint64_t version = 0;
  for (int times = 0; times < 70; ++times) {
    now_ += kInterval;
    const std::optional<uint64_t> ordered = Ask(true);
    ASSERT_TRUE(ordered.has_value());
    ASSERT_LE(*ordered, version + Saves::kMarginMax);
    version = *ordered + 1;
    ReportAll(version);
  }
}

TEST_F(SavesTest, InStepAShardThatIsStillWritingIsWaitedFor) {
  OrderVersion330();
  Report(0, 340, {Saved(330)});
  Report(1, 340);

  now_ += Saves::kWritingMax + kInterval;
  EXPECT_EQ(Ask(true), std::nullopt) << "a second checkpoint would be of no use to shard 0";
  Report(1, 400, {Saved(330)});
  EXPECT_TRUE(Ask(true).has_value());
}

TEST_F(SavesTest, InStepACheckpointBeyondTheOrderedOneMeansThatThisDoesNotCome) {
  OrderVersion330();
  Report(0, 340, {Saved(330), Saved(340)});
  Report(1, 340, {Saved(340)});

  now_ += kInterval;
  EXPECT_TRUE(Ask(true).has_value());
}

TEST_F(SavesTest, OutOfStepNobodyWaitsForAShardThatCannotWriteOrHangs) {
  ReportAll(300);
  now_ += kInterval;
  ASSERT_EQ(Ask(false), 0u);
  Report(0, 400, {Saved(301)});
  Report(1, 400);
  now_ += kInterval;
  ASSERT_EQ(Ask(false), std::nullopt) << "shard 1 writes";
  cannot_save_ = true;
  Report(1, 400);
  ASSERT_EQ(Ask(false), 0u) << "shard 1 cannot write";

  cannot_save_ = false;
  Report(0, 500, {Saved(301), Saved(401)});
  Report(1, 500);
  now_ += Saves::kWritingMax - kInterval;
  EXPECT_EQ(Ask(false), std::nullopt) << "shard 1 writes";
  now_ += kInterval;
  EXPECT_EQ(Ask(false), 0u) << "shard 1 hangs";
}

TEST_F(SavesTest, OutOfStepEachShardSavesItsNextVersion) {
  ReportAll(300);
  now_ += kInterval;
  ASSERT_EQ(Ask(false), 0u);

  Report(0, 400, {Saved(301)});
  Report(1, 400);
  now_ += kInterval;
  EXPECT_EQ(Ask(false), std::nullopt) << "shard 1 writes";
  Report(1, 400, {Saved(302)});
  EXPECT_EQ(Ask(false), 0u);
  now_ += kInterval;
  EXPECT_EQ(Ask(false), 0u) << "no shard has made a version that it could have saved";
  EXPECT_EQ(saves_.order().safe, std::nullopt);
}

TEST_F(SavesTest, OutOfStepAShardThatMakesNoVersionMeanwhileSavesTheOneItHas) {
  ReportAll(300, {Saved(200)});
  const uint64_t number = saves_.Await(0);
  ASSERT_EQ(Ask(false), 0u);

  Report(0, 300, {Saved(200), Saved(300)});
  Report(1, 301, {Saved(200)});
  now_ += kInterval;
  EXPECT_EQ(Ask(false), std::nullopt) << "shard 1 writes";
  Report(1, 302, {Saved(200), Saved(300)});
  EXPECT_EQ(Ask(false), 0u) << "the interval is over, and both have saved";

  EXPECT_TRUE(saves_.IsCarriedOut(number));
}

TEST_F(SavesTest, OutOfStepAVersionThatIsBeingSavedDoesNotCarryOutTheNextOrder) {
  ReportAll(300, {Saved(200)});
  now_ += kInterval;
  ASSERT_EQ(Ask(false), 0u);
  ReportAll(300, {Saved(200)});
  const uint64_t number = saves_.Await(0);
  ASSERT_EQ(Ask(false), 0u) << "no shard has made a version since";

  ReportAll(302, {Saved(200), Saved(300)});
  EXPECT_EQ(Ask(false), std::nullopt);
  EXPECT_FALSE(saves_.IsCarriedOut(number)) << "the shards had begun that before";
  ReportAll(302, {Saved(300), Saved(302)});
  EXPECT_EQ(Ask(false), std::nullopt);

  EXPECT_TRUE(saves_.IsCarriedOut(number));
}

TEST_F(SavesTest, TheSafeCheckpointIsTheNewestThatAllHaveAndNeverAnOlderOne) {
  Report(0, 50, {Saved(10), Saved(20), Saved(30)});
  EXPECT_EQ(saves_.order().safe, std::nullopt);
  Report(1, 50, {Saved(10), Saved(20)});
  EXPECT_EQ(saves_.order().safe, Saved(20));

  Report(1, 0);  // A new process that does not know the run yet.
  EXPECT_EQ(saves_.order().safe, Saved(20));
  Report(0, 50, {Saved(20), Saved(5, 1)});
  Report(1, 50, {Saved(20), Saved(5, 1)});
  EXPECT_EQ(saves_.order().safe, Saved(5, 1));
}

TEST_F(SavesTest, AfterAReturnNobodyWaitsForTheLastOrder) {
  ReportAll(300);
  now_ += kInterval;
  ASSERT_EQ(Ask(true), 330u);

  saves_.OnInterrupted();
  ReportAll(100);
  EXPECT_EQ(Ask(true), std::nullopt);
  now_ += kInterval;

  EXPECT_EQ(Ask(true), 102u);
}

TEST_F(SavesTest, AnAwaitedOrderDoesNotWaitForTheInterval) {
  ReportAll(300, {Saved(290)});
  now_ += absl::Milliseconds(1);

  const uint64_t number = saves_.Await(0);
  EXPECT_EQ(number, 1u);
  ASSERT_EQ(Ask(false), 0u);
  ReportAll(300, {Saved(290)});
  EXPECT_EQ(Ask(false), std::nullopt);
  EXPECT_TRUE(saves_.is_awaited()) << "nobody has saved";
  Report(0, 301, {Saved(290), Saved(301)});
  Report(1, 301, {Saved(290)});
  EXPECT_EQ(Ask(false), std::nullopt);
  EXPECT_FALSE(saves_.IsCarriedOut(number)) << "shard 1 writes";
  Report(1, 301, {Saved(290), Saved(301)});
  EXPECT_EQ(Ask(false), std::nullopt);

  EXPECT_TRUE(saves_.IsCarriedOut(number));
  now_ += kInterval - absl::Milliseconds(1);
  EXPECT_EQ(Ask(false), std::nullopt) << "the interval began with the order";
}

TEST_F(SavesTest, AnAwaitedOrderIsCarriedOutIfTheNewestVersionIsSaved) {
  ReportAll(300, {Saved(300)});
  const uint64_t number = saves_.Await(0);
  ASSERT_EQ(Ask(false), 0u);
  EXPECT_FALSE(saves_.IsCarriedOut(number)) << "no shard has heard of it";

  ReportAll(300, {Saved(300)});
  EXPECT_EQ(Ask(false), std::nullopt);

  EXPECT_TRUE(saves_.IsCarriedOut(number));
}

TEST_F(SavesTest, AnAwaitedOrderComesAfterTheOneThatIsBeingCarriedOut) {
  ReportAll(300);
  now_ += kInterval;
  ASSERT_EQ(Ask(true), 330u);

  const uint64_t number = saves_.Await(0);
  EXPECT_EQ(number, 2u);
  EXPECT_EQ(Ask(true), std::nullopt);
  ReportAll(331, {Saved(330)});
  const std::optional<uint64_t> next = Ask(true);
  ASSERT_TRUE(next.has_value());
  ReportAll(*next, {Saved(*next)});
  EXPECT_EQ(Ask(true), std::nullopt);

  EXPECT_TRUE(saves_.IsCarriedOut(number));
}

TEST_F(SavesTest, AnAwaitedOrderThatCameTooLateIsGivenAgainAtOnce) {
  ReportAll(300);
  const uint64_t number = saves_.Await(0);
  const std::optional<uint64_t> first = Ask(true);
  ASSERT_TRUE(first.has_value());
  now_ += absl::Milliseconds(100);
  ReportAll(*first + 10);

  const std::optional<uint64_t> again = Ask(true);
  ASSERT_TRUE(again.has_value());
  EXPECT_GT(*again, *first + 10);
  ReportAll(*again, {Saved(*again)});
  EXPECT_EQ(Ask(true), std::nullopt);

  EXPECT_TRUE(saves_.IsCarriedOut(number));
}

TEST_F(SavesTest, AnAwaitedOrderIsGivenAgainAfterAnInterruption) {
  ReportAll(300);
  const uint64_t number = saves_.Await(0);
  ASSERT_EQ(Ask(false), 0u);

  saves_.OnInterrupted();
  ReportAll(301, {Saved(301)});
  EXPECT_EQ(Ask(false), std::nullopt) << "time counts from now on";
  EXPECT_FALSE(saves_.IsCarriedOut(number));
  ASSERT_EQ(Ask(false), 0u);
  ReportAll(302, {Saved(301), Saved(302)});
  EXPECT_EQ(Ask(false), std::nullopt);

  EXPECT_TRUE(saves_.IsCarriedOut(number));
}

TEST_F(SavesTest, AnAwaitedOrderIsCarriedOutThoughAnotherOneIsAwaitedMeanwhile) {
  ReportAll(300);
  const uint64_t first = saves_.Await(0);
  ASSERT_EQ(Ask(false), 0u);
  const uint64_t second = saves_.Await(0);
  EXPECT_EQ(second, first + 1);

  ReportAll(301, {Saved(301)});
  EXPECT_EQ(Ask(false), 0u) << "the second order";

  EXPECT_TRUE(saves_.IsCarriedOut(first));
  EXPECT_FALSE(saves_.IsCarriedOut(second));
}

TEST_F(SavesTest, ACheckpointOfAnEarlierOrderDoesNotCarryOutALaterOne) {
  ReportAll(300);
  now_ += kInterval;
  ASSERT_EQ(Ask(false), 0u);
  Report(0, 500, {Saved(301)});
  Report(1, 500);
  now_ += Saves::kWritingMax;
  const uint64_t number = saves_.Await(0);
  ASSERT_EQ(Ask(false), 0u) << "shard 1 has had its time";

  Report(0, 501, {Saved(301), Saved(501)});
  Report(1, 501, {Saved(302)});
  EXPECT_EQ(Ask(false), std::nullopt);
  EXPECT_FALSE(saves_.IsCarriedOut(number)) << "shard 1 had begun that before";
  Report(1, 502, {Saved(302), Saved(502)});
  EXPECT_EQ(Ask(false), std::nullopt);

  EXPECT_TRUE(saves_.IsCarriedOut(number));
}

TEST_F(SavesTest, AnOrderThatWillNotBeCarriedOutAnyMoreIsAwaitedUnderTheNextNumber) {
  ReportAll(300);
  now_ += kInterval;
  ASSERT_EQ(Ask(false), 0u);
  const uint64_t number = saves_.order().number;
  saves_.OnInterrupted();

  EXPECT_EQ(saves_.Await(number), number + 1);

  EXPECT_EQ(Ask(false), std::nullopt) << "time counts from now on";
  EXPECT_EQ(Ask(false), 0u);
}

TEST_F(CoordinatorGenerationsTest, AnOperatorHearsWhenAllShardsHaveSaved) {
  TrainDurably(Durable());
  coordinator().Tick(now_);
  Reach(5);

  const absl::StatusOr<uint64_t> number = coordinator().OnSaveCheckpoint(0, now_);
  ASSERT_TRUE(number.ok()) << number.status();
  EXPECT_EQ(coordinator().orders().save.number, 1u);
  reports_[0].saved.push_back(Saved(6));
  reports_[0].version = Version{6};
  Report(0);
  absl::StatusOr<SaveProgress> progress = coordinator().AskSave(*number);
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_FALSE(progress->is_complete);
  EXPECT_TRUE(progress->shards[0].has_saved);
  EXPECT_EQ(progress->shards[0].saved, Saved(6));
  EXPECT_FALSE(progress->shards[1].has_saved);

  const uint64_t changes = coordinator().changes();
  reports_[1].saved.push_back(Saved(6));
  reports_[1].version = Version{6};
  Report(1);
  EXPECT_TRUE(coordinator().AskSave(*number)->is_complete);
  EXPECT_GT(coordinator().changes(), changes) << "so that the call is answered";
  EXPECT_EQ(*coordinator().OnSaveCheckpoint(*number, now_), *number);
}

TEST_F(CoordinatorGenerationsTest, AnOperatorHearsWhyNoShardSaves) {
  RunSpec spec = Durable();
  Use(spec);
  EXPECT_EQ(
      coordinator().OnSaveCheckpoint(0, now_).status(),
      absl::FailedPreconditionError("training has not begun: the run is WAITING_FOR_SERVERS"));
  TrainDurably(spec);
  const uint64_t number = *coordinator().OnSaveCheckpoint(0, now_);
  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(coordinator().AskSave(number).status()));
  ASSERT_TRUE(coordinator().OnLeave(ada_, "no finite numbers", now_, true).ok());
  EXPECT_TRUE(absl::IsAborted(coordinator().OnSaveCheckpoint(0, now_).status()));

  spec.durability.level = DurabilitySpec::Level::kMemory;
  initialized_ = false;
  TrainDurably(spec);
  EXPECT_EQ(coordinator().OnSaveCheckpoint(0, now_).status(),
            absl::FailedPreconditionError(
                "the servers of this run make no checkpoints, as durability.level is memory"));
}

TEST_F(CoordinatorGenerationsTest, TheOrdersSayWhatToSaveWhileTheRunTrains) {
  TrainDurably(Durable(Policy::kHardsync));
  coordinator().Tick(now_);
  EXPECT_EQ(coordinator().orders().save, (SaveOrder{.safe = Saved(0)}));
  now_ += absl::Seconds(4);
  coordinator().Tick(now_);
  Reach(6);
  now_ += absl::Seconds(6);
  HearWorkers();

  EXPECT_EQ(coordinator().orders().save,
            (SaveOrder{.number = 1, .version = Version{8}, .safe = Saved(0)}));
}

TEST_F(CoordinatorGenerationsTest, NothingIsOrderedWhileAShardIsAway) {
  TrainDurably(Durable());
  coordinator().Tick(now_);
  Restart(1);
  NameCheckpoints(1);
  now_ += absl::Seconds(5);
  Report(0);
  EXPECT_EQ(coordinator().orders().save.number, 0u);

  Follow(1);
  now_ += absl::Seconds(10);
  Report(0);
  EXPECT_EQ(coordinator().orders().save.number, 1u);
}

TEST_F(CoordinatorGenerationsTest, WithoutCheckpointsNothingIsOrdered) {
  RunSpec spec = Durable(Policy::kHardsync);
  spec.durability.level = DurabilitySpec::Level::kMemory;
  TrainDurably(spec);
  now_ += absl::Seconds(4);
  coordinator().Tick(now_);
  now_ += absl::Seconds(10);
  Report(0);

  EXPECT_EQ(coordinator().orders().save, SaveOrder());
}

}  // namespace
}  // namespace slipstream
