// Tests of an operator's order to save a checkpoint.

#include <gtest/gtest.h>

#include "proto/operation.pb.h"
#include "tests/server/control_plane/coordinator_service_fixture.h"

namespace slipstream {
namespace {

class CoordinatorSavingTest : public CoordinatorServiceTest {
 protected:
  static RunSpec Durable() {
    RunSpec spec = Spec();
    spec.durability.level = DurabilitySpec::Level::kSynced;
    return spec;
  }

  v1::SaveCheckpointReply Save(uint64_t order) {
    v1::SaveCheckpointRequest request;
    request.set_order(order);
    v1::SaveCheckpointReply reply;
    const grpc::Status status = Call(&Stub::SaveCheckpoint, request, reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  /// The server has made and saved a version, and says why it could not save another one.
  void ReportSaved(uint64_t version, const std::string& failure = "") {
    v1::SyncServerRequest request;
    request.set_orders_seen(seen_);
    request.set_initialized(true);
    request.mutable_progress()->set_version(version);
    request.add_saved()->set_version(version);
    request.mutable_status()->mutable_checkpoint()->set_version(version);
    request.mutable_status()->mutable_checkpoint()->set_bytes(100);
    request.mutable_status()->set_checkpoint_failure(failure);
    v1::SyncServerReply reply;
    ASSERT_TRUE(Sync(request, reply).ok());
    seen_ = reply.orders();
  }
};

TEST_F(CoordinatorSavingTest, TellsWhenTheShardHasSaved) {
  Train(Durable());
  const v1::SaveCheckpointReply ordered = Save(0);
  EXPECT_FALSE(ordered.is_complete());
  EXPECT_EQ(ordered.shards(0).reason(), "it has not written it yet");

  v1::SaveCheckpointReply reply;
  while (!reply.is_complete()) {
    ReportSaved(12);
    reply = Save(ordered.order());
    ASSERT_EQ(reply.order(), ordered.order());
  }

  ASSERT_EQ(reply.shards_size(), 1);
  EXPECT_TRUE(reply.shards(0).has_saved());
  EXPECT_EQ(reply.shards(0).checkpoint().version(), 12u);
  EXPECT_EQ(reply.shards(0).checkpoint().bytes(), 100u);
  EXPECT_EQ(reply.shards(0).reason(), "");
}

TEST_F(CoordinatorSavingTest, TellsWhyTheShardHasNotSaved) {
  Train(Durable());
  ReportSaved(0, "no space");
  const v1::SaveCheckpointReply ordered = Save(0);
  EXPECT_EQ(ordered.shards(0).reason(), "no space");
  EXPECT_TRUE(ordered.shards(0).has_checkpoint());

  clock_.Advance(absl::Milliseconds(1500));
  Save(ordered.order());
  clock_.Advance(absl::Milliseconds(1500));

  EXPECT_EQ(Save(ordered.order()).shards(0).reason(), "its server is silent");
}

TEST_F(CoordinatorSavingTest, RefusesWhereNothingIsSaved) {
  Train();
  v1::SaveCheckpointReply reply;

  const grpc::Status status = Call(&Stub::SaveCheckpoint, v1::SaveCheckpointRequest(), reply);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(),
            "the servers of this run make no checkpoints, as durability.level is memory");
}

}  // namespace
}  // namespace slipstream
