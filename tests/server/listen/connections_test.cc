#include "server/listen/connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "common/files/file_descriptor.h"
#include "server/listen/tcp_listener.h"
#include "tests/server/listen/connections_fixture.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

TEST_F(ConnectionsTest, StrangersHaveLittleTime) {
  Start({.strangers_max = 2});
  const FileDescriptor stranger = Connect();
  AwaitCounts(1, 0, 0);

  milliseconds_ += 4'999;
  EXPECT_GT(Receive(stranger), 0) << "gRPC's first words; it is not closed yet";
  milliseconds_ += 1;

  EXPECT_TRUE(IsClosed(stranger));
  log_.WaitFor("closed connections count=1");
}

TEST_F(ConnectionsTest, StrangersHaveFewPlacesAndLessTimeWhileOthersWait) {
  Start({.strangers_max = 2});
  const FileDescriptor first = Connect();
  const FileDescriptor second = Connect();
  AwaitCounts(2, 0, 0);
  const FileDescriptor third = Connect();

  milliseconds_ += 2'000;

  EXPECT_TRUE(IsClosed(first));
  EXPECT_TRUE(IsClosed(second));
  EXPECT_GT(Receive(third), 0) << "its turn has come";
}

TEST_F(ConnectionsTest, OnlySoManyStrangersComeAtATime) {
  Start({.newcomers_max = 1});
  const FileDescriptor newcomer = Connect();
  AwaitCounts(1, 0, 0);
  EXPECT_FALSE(connections_->HasPlace());

  milliseconds_ += 500;

  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionsTest, AMembersConnectionStaysAndLeavesItsPlaceToTheNext) {
  Start({.strangers_max = 1});
  const auto client = NewClient();
  ComeAsMember(*client, 3);
  AwaitCounts(0, 0, 1);
  const FileDescriptor stranger = Connect();
  AwaitCounts(1, 0, 1);

  milliseconds_ += 600'000;

  EXPECT_TRUE(IsClosed(stranger));
  AwaitCounts(0, 0, 1);
  ComeAsMember(*client, 3);
  AwaitCounts(0, 0, 1);
}

TEST_F(ConnectionsTest, WhoGoesAtOnceKeepsThePlaceForAWhile) {
  Start({.strangers_max = 1});
  {
    const FileDescriptor brief = Connect();
    AwaitCounts(1, 0, 0);
  }
  AwaitCounts(0, 0, 0);
  EXPECT_FALSE(connections_->HasPlace());
  const FileDescriptor next = Connect();

  // More than place_time: where the end of the brief connection came as a FIN and not as a reset,
  // TCP counts it as a byte received.
  milliseconds_ += 1'100;

  EXPECT_GT(Receive(next), 0);
}

TEST_F(ConnectionsTest, GuestsHavePlacesOfTheirOwnUntilTheyRest) {
  Start({.strangers_max = 8, .guests_max = 1});
  const auto guest = NewClient();
  ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  const auto one_too_many = NewClient();
  ComeAsGuest(*one_too_many);
  AwaitCounts(1, 1, 0);

  milliseconds_ += 60'000;

  AwaitCounts(0, 0, 0);
  const auto later = NewClient();  // The others may not have noticed yet that they are closed.
  ComeAsGuest(*later);
  AwaitCounts(0, 1, 0);
}

TEST_F(ConnectionsTest, AMemberHasSoManyConnections) {
  Start({.strangers_max = 8, .connections_of_member_max = 2});
  std::vector<std::unique_ptr<v1::Coordinator::Stub>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(NewClient());
    ComeAsMember(*clients.back(), 3);
  }
  AwaitCounts(1, 0, 2);
  clients.push_back(NewClient());
  ComeAsMember(*clients.back(), 4);
  AwaitCounts(1, 0, 3);
}

TEST_F(ConnectionsTest, ACallHasToSayForWhomItIsEvenOnAMembersConnection) {
  Start({});
  const auto client = NewClient();
  ComeAsMember(*client, 3);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = client->Heartbeat(&context);
  stream->WaitForInitialMetadata();

  milliseconds_ += 5'000;

  v1::HeartbeatReply reply;
  EXPECT_FALSE(stream->Read(&reply));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("SILENT: the call has not said within 5.00 s"));
  ComeAsMember(*client, 3);
  AwaitCounts(0, 0, 1);
}

TEST_F(ConnectionsTest, ConnectionsOverIpv6AreToldApartToo) {
  if (!TcpListener::Listen("[::1]", 0).ok()) GTEST_SKIP() << "no IPv6 here";
  Start({}, "[::1]");
  const auto member = NewClient();
  const auto guest = NewClient();
  ComeAsMember(*member, 3);
  ComeAsGuest(*guest);

  AwaitCounts(0, 1, 1);
}

}  // namespace
}  // namespace slipstream
