#include <gtest/gtest.h>

#include "tests/server/control_plane/coordinator_service_fixture.h"

// Tests of what the coordinator says of a server that comes back at another address.

namespace slipstream {
namespace {

TEST_F(CoordinatorServiceTest, TellsMembersAndReadersWhereAServerIsThatCameBackElsewhere) {
  Start();
  Sync();
  ada_ = Register();
  bob_ = Register();
  ASSERT_EQ(Prepare(Model(ada_)).state(), v1::PrepareModelReply::GRANTED);
  v1::FollowRequest reader;
  reader.set_instance(3);
  reader.set_host("host");
  reader.set_name("reader");
  v1::FollowReply followed;
  ASSERT_TRUE(Call(&Stub::Follow, reader, followed).ok());
  EXPECT_EQ(followed.servers_size(), 0) << "it did not ask for the model";
  EXPECT_EQ(Beat(ada_).servers_size(), 0) << "Register has said it";
  for (int i = 0; i < 3; ++i) {  // The server is silent; a longer jump would count for nobody.
    clock_.Advance(absl::Seconds(2));
    for (const v1::Identity& worker : {ada_, bob_}) EXPECT_EQ(Beat(worker).servers_size(), 0);
  }

  v1::SyncServerRequest elsewhere;
  elsewhere.set_address("localhost:2");
  elsewhere.set_instance(2);
  for (int i = 0; i < 2; ++i) {
    v1::SyncServerReply reply;
    const grpc::Status status = Sync(elsewhere, reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  const v1::HeartbeatReply news = Beat(ada_);
  ASSERT_EQ(news.servers_size(), 1);
  EXPECT_EQ(news.servers(0), "localhost:2");
  ASSERT_TRUE(Call(&Stub::Follow, reader, followed).ok());
  ASSERT_EQ(followed.servers_size(), 1);
  EXPECT_EQ(followed.servers(0), "localhost:2");
  EXPECT_FALSE(followed.has_layout());
  EXPECT_EQ(log_.Count("server moved shard=0 from=localhost:1 to=localhost:2"), 1);
}

}  // namespace
}  // namespace slipstream
