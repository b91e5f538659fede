#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/server/core/coordinator/coordinator_fixture.h"

// Tests of what a run does for its readers: workers wait for those that want it, and servers stay
// for the last state.

namespace slipstream {
namespace {

ReaderReport ReportOf(uint64_t instance, std::optional<uint64_t> lag_max = std::nullopt) {
  return {.instance = instance, .host = "host", .name = "sampler", .lag_max = lag_max};
}

class AwaitedReadersTest : public CoordinatorTest {
 protected:
  static RunSpec Waiting() {
    RunSpec spec = Spec();
    spec.readers.on_lag = ReadersSpec::OnLag::kWait;
    return spec;
  }

  /// Goes to the end of a run whose weights nobody measures.
  void Finish() {
    RunSpec spec = Spec();
    spec.evaluation.by = EvaluationSpec::By::kNobody;
    Train(spec);
    lease_ = spec.cluster.lease;
    ASSERT_TRUE(coordinator().OnReader(ReportOf(7), now_).ok());
    WorkAllAs(ada_);
    drained_ = true;
    Sync();
    ASSERT_TRUE(coordinator().OnLeave(ada_, "", now_).ok());
    ASSERT_TRUE(coordinator().OnLeave(bob_, "", now_).ok());
    ASSERT_EQ(coordinator().phase(), Phase::kFinished);
  }

  const LagLimits& awaited() { return coordinator().orders().awaited_readers; }

  absl::Duration lease_;
};

TEST_F(AwaitedReadersTest, ShardsAreToldWhomWorkersWaitFor) {
  Train(Waiting());
  ASSERT_TRUE(coordinator().OnReader(ReportOf(7, 4), now_).ok());
  ASSERT_TRUE(coordinator().OnReader(ReportOf(8), now_).ok());
  coordinator().Tick(now_);
  EXPECT_EQ(awaited(), (LagLimits{{7, 4}}));

  ReaderReport leaving = ReportOf(7, 4);
  leaving.leaves = true;
  ASSERT_TRUE(coordinator().OnReader(leaving, now_).ok());
  coordinator().Tick(now_);
  EXPECT_EQ(awaited(), LagLimits());
}

TEST_F(AwaitedReadersTest, AReaderThatHasTakenNothingIsNamedOnceWorkersWaitForIt) {
  Train(Waiting());
  ASSERT_TRUE(coordinator().OnReader(ReportOf(7, 4), now_).ok());
  const auto is_awaited = [this] {
    return coordinator().readers().IsAwaited(coordinator().readers().readers().at(0));
  };
  EXPECT_FALSE(is_awaited());
  ServerReport report;
  report.shard = ShardId{0};
  report.instance = instance_[0];
  report.address = "host:0";
  report.initialized = true;
  report.version = Version{4};
  ASSERT_TRUE(coordinator().OnServer(report, now_).ok());
  EXPECT_TRUE(is_awaited());
}

TEST_F(AwaitedReadersTest, AReaderThatFellSilentIsNotWaitedFor) {
  const RunSpec spec = Waiting();
  Train(spec);
  ASSERT_TRUE(coordinator().OnReader(ReportOf(7, 4), now_).ok());
  Pass(spec.cluster.lease + absl::Seconds(2), {ada_, bob_});
  EXPECT_EQ(awaited(), LagLimits());
}

TEST_F(AwaitedReadersTest, NobodyIsWaitedForUnlessTheSettingsSaySo) {
  Train(Spec());
  ASSERT_TRUE(coordinator().OnReader(ReportOf(7, 4), now_).ok());
  coordinator().Tick(now_);
  EXPECT_EQ(awaited(), LagLimits());
  EXPECT_TRUE(coordinator().OnReader(ReportOf(8, 0), now_).ok());
}

TEST_F(AwaitedReadersTest, WorkersDoNotWaitOnceTrainingEnds) {
  Train(Waiting());
  ASSERT_TRUE(coordinator().OnReader(ReportOf(7, 4), now_).ok());
  coordinator().Tick(now_);
  ASSERT_EQ(awaited(), (LagLimits{{7, 4}}));
  ASSERT_TRUE(coordinator().OnEndTraining(EndReason::kInterrupted, now_).ok());
  EXPECT_EQ(awaited(), LagLimits());
}

TEST_F(AwaitedReadersTest, AReaderThatMayNotLagAtAllIsRefusedWhereWorkersWait) {
  Train(Waiting());
  const auto refused = coordinator().OnReader(ReportOf(7, 0), now_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("lag_max: at least 1"), std::string::npos);
}

TEST_F(AwaitedReadersTest, ServersStayUntilReadersHaveLeft) {
  Finish();
  EXPECT_FALSE(coordinator().orders().may_exit);
  ReaderReport leaving = ReportOf(7);
  leaving.leaves = true;
  ASSERT_TRUE(coordinator().OnReader(leaving, now_).ok());
  coordinator().Tick(now_);
  EXPECT_TRUE(coordinator().orders().may_exit);
}

TEST_F(AwaitedReadersTest, ServersStayForReadersForALeaseAtMost) {
  Finish();
  for (const absl::Time end = now_ + lease_ - absl::Seconds(1); now_ < end;) {
    Pass(absl::Seconds(1), {});
    ASSERT_TRUE(coordinator().OnReader(ReportOf(7), now_).ok());
    ASSERT_FALSE(coordinator().orders().may_exit);
  }
  Pass(absl::Seconds(2), {});
  EXPECT_TRUE(coordinator().orders().may_exit);
}

}  // namespace
}  // namespace slipstream
