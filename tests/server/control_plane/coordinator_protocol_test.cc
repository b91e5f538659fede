#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>

#include "common/process/version.h"
#include "tests/server/control_plane/coordinator_service_fixture.h"

namespace slipstream {
namespace {

using CoordinatorProtocolTest = CoordinatorServiceTest;

TEST_F(CoordinatorProtocolTest, RefusesPeersOfANewerProtocol) {
  Start();
  const auto refuses = [this](auto method, auto request, auto reply, const std::string& peer) {
    request.set_protocol(kProtocol + 1);
    const grpc::Status status = Call(method, request, reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << peer;
    EXPECT_THAT(status.error_message(),
                testing::HasSubstr(fmt::format("and {} speaks {}", peer, kProtocol + 1)));
  };
  refuses(&Stub::SyncServer, v1::SyncServerRequest(), v1::SyncServerReply(),
          "the server of shard 0");
  refuses(&Stub::Register, v1::RegisterRequest(), v1::RegisterReply(), "the worker");
  refuses(&Stub::Follow, v1::FollowRequest(), v1::FollowReply(), "the reader");
  refuses(&Stub::ChangeRun, v1::ChangeRunRequest(), v1::ChangeRunReply(), "psctl");
  refuses(&Stub::SaveCheckpoint, v1::SaveCheckpointRequest(), v1::SaveCheckpointReply(), "psctl");
}

TEST_F(CoordinatorProtocolTest, TakesItsOwnProtocolAndWhatSaysNone) {
  Start();
  v1::SyncServerRequest server;
  server.set_protocol(kProtocol);
  v1::SyncServerReply orders;
  ASSERT_TRUE(Sync(server, orders).ok());
  EXPECT_EQ(orders.protocol(), kProtocol);

  v1::RegisterRequest worker;
  for (const uint32_t protocol : {0u, kOldestProtocol, kProtocol}) {
    worker.set_protocol(protocol);
    v1::RegisterReply reply;
    EXPECT_TRUE(Call(&Stub::Register, worker, reply).ok());
    EXPECT_EQ(reply.protocol(), kProtocol);
  }
  EXPECT_EQ(Status().protocol(), kProtocol);
}

}  // namespace
}  // namespace slipstream
