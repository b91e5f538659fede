#include "worker/client/joining.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/fake_coordinator.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

/// Worker 3 of run 5, whose incarnation 2 was told that it is fenced.
class WhyFencedTest : public testing::Test {
 protected:
  /// Returns the explanation if run `run` has worker `worker` with this incarnation, on a machine
  /// called node7.
  absl::Status WhyFencedBy(uint64_t run, uint32_t worker, uint64_t incarnation) {
    v1::RunStatus status;
    status.set_run(run);
    v1::WorkerStatus& line = *status.add_workers();
    line.set_worker(worker);
    line.set_incarnation(incarnation);
    line.set_host("node7");
    coordinator_.SetStatus(status);
    return WhyFenced(client_, identity_, fenced_);
  }

  const Identity identity_{.run = 5, .worker = WorkerId{3}, .incarnation = Incarnation{2}};
  const absl::Status fenced_ = absl::FailedPreconditionError("shard 1 says FENCED");
  FakeCoordinator coordinator_;
  CoordinatorClient client_{coordinator_.address(), {}, [](absl::Duration) { return true; }};
};

TEST_F(WhyFencedTest, NamesTheProcessThatHasTheIdNow) {
  const absl::Status why = WhyFencedBy(5, 3, 4);

  EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument);
  const std::string message(why.message());
  EXPECT_THAT(message, HasSubstr("registered as worker 3, on node7 (incarnation 4)"));
  EXPECT_THAT(message, HasSubstr("FENCED"));
}

TEST_F(WhyFencedTest, AWorkerThatWasOnlyGivenUpMayComeBack) {
  EXPECT_EQ(WhyFencedBy(5, 3, 2), fenced_);
  EXPECT_EQ(WhyFencedBy(5, 4, 7), fenced_) << "a newer one has another id";
  EXPECT_EQ(WhyFencedBy(6, 3, 4), fenced_) << "another run counts anew";
}

TEST_F(WhyFencedTest, ACoordinatorThatDoesNotSayIsNotWaitedFor) {
  coordinator_.FailNext(1, {grpc::UNAVAILABLE, "busy"});

  EXPECT_EQ(WhyFencedBy(5, 3, 4), fenced_);
  EXPECT_EQ(coordinator_.calls(), 1);
}

}  // namespace
}  // namespace slipstream
