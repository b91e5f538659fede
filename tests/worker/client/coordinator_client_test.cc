#include "worker/client/coordinator_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "proto/shard.grpc.pb.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/loopback.h"
#include "worker/client/joining.h"

namespace slipstream {
namespace {

const RetryOptions kQuick{.first_wait = absl::Milliseconds(1),
                          .wait_max = absl::Milliseconds(2),
                          .give_up_after = absl::Milliseconds(100)};

bool DoNotWait(absl::Duration) { return true; }

TEST(CoordinatorClientTest, RepeatsACallUntilTheCoordinatorIsThere) {
  FakeCoordinator coordinator;
  coordinator.FailNext(3, {grpc::UNAVAILABLE, "not yet"});
  CoordinatorClient client(coordinator.address(), {}, DoNotWait);

  const absl::StatusOr<JoinedRun> membership = JoinRun(client, WorkerId{7});

  ASSERT_TRUE(membership.ok()) << membership.status();
  EXPECT_EQ(membership->identity.worker, WorkerId{7});
  EXPECT_EQ(membership->lease, absl::Seconds(1));
  EXPECT_EQ(coordinator.calls(), 4);
}

/// Does not answer Leave until the caller has cancelled the call.
class SilentCoordinator final : public v1::Coordinator::Service {
  grpc::Status Leave(grpc::ServerContext* context, const v1::LeaveRequest*,
                     v1::LeaveReply*) override {
    while (!context->IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  }
};

/// A client with its own clock, whose waits pass at once.
class PatienceTest : public testing::Test {
 protected:
  /// Returns how long the next call is retried if every try fails with `failure`. Stores the final
  /// error in `status_`.
  absl::Duration TimeTried(const grpc::Status& failure) {
    coordinator_.FailNext(1'000'000, failure);
    const absl::Time begin = now_;
    status_ = client_.FinishInitialization({});
    coordinator_.FailNext(0, grpc::Status::OK);
    return now_ - begin;
  }

  FakeCoordinator coordinator_;
  absl::Time now_ = absl::UnixEpoch();
  CoordinatorClient client_{coordinator_.address(),
                            {.retry = {.now = [this] { return now_; }}},
                            [this](absl::Duration wait) {
                              now_ += wait;
                              return true;
                            }};
  absl::Status status_;
};

TEST_F(PatienceTest, AMemberTriesForThreeLeasesIfTheyAreLonger) {
  coordinator_.SetLease(60'000);
  ASSERT_TRUE(JoinRun(client_, std::nullopt).ok());

  EXPECT_EQ(TimeTried({grpc::UNAVAILABLE, "gone"}), absl::Minutes(3));
  EXPECT_EQ(status_.code(), absl::StatusCode::kUnavailable) << status_;
}

TEST_F(PatienceTest, WhoIsNoMemberYetTriesForHalfAMinuteAndSoDoesOneOfAShortLease) {
  EXPECT_EQ(TimeTried({grpc::UNAVAILABLE, "gone"}), absl::Seconds(30));
  coordinator_.SetLease(1000);
  ASSERT_TRUE(JoinRun(client_, std::nullopt).ok());
  EXPECT_EQ(TimeTried({grpc::UNAVAILABLE, "gone"}), absl::Seconds(30));
}

TEST_F(PatienceTest, ACoordinatorThatHasTooMuchToDoIsAskedAgainAndGivenUpAsBusy) {
  EXPECT_EQ(TimeTried({grpc::RESOURCE_EXHAUSTED, "too many calls"}), absl::Seconds(30));
  EXPECT_EQ(status_.code(), absl::StatusCode::kResourceExhausted) << status_;

  coordinator_.FailNext(2, {grpc::RESOURCE_EXHAUSTED, "too many calls"});
  EXPECT_TRUE(client_.FinishInitialization({}).ok());
}

TEST(CoordinatorClientTest, PassesOnWhatTheCoordinatorRefuses) {
  FakeCoordinator coordinator;
  coordinator.FailNext(1, {grpc::FAILED_PRECONDITION, "fenced"});
  const CoordinatorClient client(coordinator.address(), {}, DoNotWait);

  EXPECT_EQ(client.FinishInitialization({}), absl::FailedPreconditionError("fenced"));
  EXPECT_EQ(coordinator.calls(), 1);
}

TEST(CoordinatorClientTest, GivesUpByNameACoordinatorOutOfReach) {
  // Port 1 of this machine is reserved, and no process listens there.
  const CoordinatorClient client("127.0.0.1:1", {.retry = kQuick}, DoNotWait);

  const absl::Status status = client.FinishInitialization({});

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("127.0.0.1:1"), absl::string_view::npos) << status;
}

TEST(CoordinatorClientTest, ACallEndsAtItsDeadlineThoughNobodyAnswers) {
  SilentCoordinator coordinator;
  const Loopback server = ServeOnLoopback(coordinator);
  const CoordinatorClient client(server.address(), {.call_timeout = absl::Milliseconds(20)},
                                 DoNotWait);

  EXPECT_EQ(client.Leave({}).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(CoordinatorClientTest, SaysThatAServerIsNotTheOneWithTheCoordinator) {
  v1::Shard::Service shard;
  const Loopback server = ServeOnLoopback(shard);
  const CoordinatorClient client(server.address(), {}, DoNotWait);

  const absl::Status status = client.FinishInitialization({});

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.ToString().find("no coordinator at " + server.address()), std::string::npos)
      << status;
}

TEST(CoordinatorClientTest, StopsWhenTheProgramStops) {
  const CoordinatorClient client("127.0.0.1:1", {}, [](absl::Duration) { return false; });

  EXPECT_EQ(client.FinishInitialization({}).code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace slipstream
