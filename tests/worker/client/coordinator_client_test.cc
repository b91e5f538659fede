#include "worker/client/coordinator_client.h"

#include <gtest/gtest.h>

#include <atomic>

#include "proto/shard.grpc.pb.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/loopback.h"
#include "worker/client/membership.h"

namespace slipstream {
namespace {

constexpr RetryOptions kQuick{.first_wait = absl::Milliseconds(1),
                              .wait_max = absl::Milliseconds(2),
                              .give_up_after = absl::Milliseconds(100)};

bool DoNotWait(absl::Duration) { return true; }

TEST(CoordinatorClientTest, RepeatsACallUntilTheCoordinatorIsThere) {
  FakeCoordinator coordinator;
  coordinator.FailNext(3, {grpc::UNAVAILABLE, "not yet"});
  const CoordinatorClient client(coordinator.address(), {}, DoNotWait);

  const absl::StatusOr<Membership> membership = JoinRun(client, WorkerId{7});

  ASSERT_TRUE(membership.ok()) << membership.status();
  EXPECT_EQ(membership->identity.worker, WorkerId{7});
  EXPECT_EQ(membership->lease, absl::Seconds(1));
  EXPECT_EQ(coordinator.calls(), 4);
}

TEST(CoordinatorClientTest, PassesOnWhatTheCoordinatorRefuses) {
  FakeCoordinator coordinator;
  coordinator.FailNext(1, {grpc::FAILED_PRECONDITION, "fenced"});
  const CoordinatorClient client(coordinator.address(), {}, DoNotWait);

  EXPECT_EQ(client.FinishInitialization({}), absl::FailedPreconditionError("fenced"));
  EXPECT_EQ(coordinator.calls(), 1);
}

TEST(CoordinatorClientTest, GivesUpByNameACoordinatorOutOfReach) {
  // Port 1 of this machine is reserved and nothing listens there.
  const CoordinatorClient client("127.0.0.1:1", {.retry = kQuick}, DoNotWait);

  const absl::Status status = client.FinishInitialization({});

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("127.0.0.1:1"), absl::string_view::npos) << status;
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
