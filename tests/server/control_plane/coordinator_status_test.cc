#include <gtest/gtest.h>

#include "absl/time/time.h"
#include "tests/server/control_plane/coordinator_service_fixture.h"

// Tests of the status that the coordinator makes.

namespace slipstream {
namespace {

using CoordinatorStatusTest = CoordinatorServiceTest;

TEST_F(CoordinatorStatusTest, SaysHowLongAServerHasBeenSilent) {
  Start();
  Sync();
  EXPECT_EQ(Status().shards(0).silent_seconds(), 0);

  clock_.Advance(absl::Milliseconds(1500));

  EXPECT_DOUBLE_EQ(Status().shards(0).silent_seconds(), 1.5);
}

TEST_F(CoordinatorStatusTest, ThoseWhoAskTogetherShareAStatusUntilSomethingChanges) {
  options_.status_age_max = absl::Hours(1);
  Start();
  Sync();
  EXPECT_EQ(Status().shards(0).silent_seconds(), 0);
  clock_.Advance(absl::Milliseconds(1500));
  EXPECT_EQ(Status().shards(0).silent_seconds(), 0);

  Register();

  EXPECT_DOUBLE_EQ(Status().shards(0).silent_seconds(), 1.5);
  EXPECT_EQ(Status().workers_size(), 1);
}

}  // namespace
}  // namespace slipstream
