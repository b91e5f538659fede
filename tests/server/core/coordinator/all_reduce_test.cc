// Runs whose workers add up their gradients themselves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/core/coordinator/coordinator_fixture.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

class CoordinatorAllReduceTest : public CoordinatorTest {
 protected:
  void TrainTogether() { Train(Spec(PolicyKind::kAllReduce)); }

  /// The first worker reports so many mini-batches of all workers.
  void Report(uint64_t batches) {
    const UnitReport done{1, batches};
    ASSERT_TRUE(coordinator().OnHeartbeat(ada_, {&done, 1}, now_).ok());
  }
};

TEST_F(CoordinatorAllReduceTest, CountsWhatTheFirstWorkerReportsAcrossEpochs) {
  TrainTogether();
  Report(3);
  EXPECT_EQ(coordinator().epochs_done(), 0u);
  Report(5);  // Of two epochs of 4.
  EXPECT_EQ(coordinator().batches_done(), 5u);
  EXPECT_EQ(coordinator().epochs_done(), 1u);
  EXPECT_TRUE(coordinator().EvaluationFor(ada_.worker).has_value());
  EXPECT_TRUE(coordinator().HasWork(bob_.worker));
  Report(8);
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
  EXPECT_EQ(coordinator().end_reason(), EndReason::kEpochs);
}

TEST_F(CoordinatorAllReduceTest, HandsOutNoUnits) {
  TrainTogether();
  EXPECT_EQ(Ask(ada_), WorkState::kWait);
  EXPECT_EQ(Ask(bob_), WorkState::kWait);
}

TEST_F(CoordinatorAllReduceTest, AnEarlyEndWaitsUntilTheFirstWorkerHasPublished) {
  TrainTogether();
  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  Report(2);
  ASSERT_TRUE(coordinator().OnDonePushing(bob_, now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kTraining);
  ASSERT_TRUE(coordinator().OnDonePushing(ada_, now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
}

TEST_F(CoordinatorAllReduceTest, TheDeathOfAWorkerEndsTheRunAndIsNamed) {
  TrainTogether();
  Pass(absl::Seconds(7), {ada_});
  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_THAT(coordinator().failure(), HasSubstr("worker 1 on host is gone (unheard of"));
}

TEST_F(CoordinatorAllReduceTest, SoDoesAWorkerThatLeaves) {
  TrainTogether();
  ASSERT_TRUE(coordinator().OnLeave(ada_, "disk full", now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kFailed);
  EXPECT_THAT(coordinator().failure(), HasSubstr("worker 0 on host is gone (disk full)"));
}

TEST_F(CoordinatorAllReduceTest, AfterTheLastUpdateNobodyIsNeeded) {
  TrainTogether();
  Report(8);
  ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
  EXPECT_EQ(coordinator().phase(), Phase::kDraining);
}

TEST_F(CoordinatorAllReduceTest, NobodyJoinsThoseWhoHaveBegun) {
  TrainTogether();
  EXPECT_EQ(coordinator().OnRegister({.host = "late"}, now_).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(CoordinatorAllReduceTest, IdsAreThePlacesInTheSums) {
  Use(Spec(PolicyKind::kAllReduce));
  Sync();
  const auto beyond = coordinator().OnRegister({.worker = WorkerId{2}, .host = "host"}, now_);
  EXPECT_EQ(beyond.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(beyond.status().message()), HasSubstr("cluster.workers, 2"));
}

TEST_F(CoordinatorAllReduceTest, WorkersFindEachOther) {
  TrainTogether();
  EXPECT_EQ(coordinator().AskContact(bob_, ada_.worker).value(), "");
  const uint64_t before = coordinator().changes();
  ASSERT_TRUE(coordinator().OnMeet(ada_, "ada's address", now_).ok());
  EXPECT_GT(coordinator().changes(), before) << "waiting calls have an answer";
  EXPECT_EQ(coordinator().AskContact(bob_, ada_.worker).value(), "ada's address");
  EXPECT_EQ(coordinator().AskContact(bob_, WorkerId{2}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const std::string long_contact(WorkerSupply::kContactBytesMax + 1, 'a');
  EXPECT_EQ(coordinator().OnMeet(bob_, long_contact, now_).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CoordinatorAllReduceTest, OnlyTheWorkersOfSuchARunMeet) {
  Train(Spec());
  EXPECT_EQ(coordinator().OnMeet(ada_, "ada's address", now_).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(CoordinatorAllReduceTest, NothingChangesWhileItTrains) {
  TrainTogether();
  RunChange change;
  change.settings = Spec(PolicyKind::kAllReduce);
  change.settings.optimizer.learning_rate = 0.5;
  EXPECT_EQ(coordinator().OnChange(change, now_).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace slipstream
