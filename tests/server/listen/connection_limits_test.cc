#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>

#include "common/files/file_descriptor.h"
#include "tests/server/listen/connections_fixture.h"

namespace slipstream {
namespace {

using ConnectionLimitsTest = ConnectionsTest;

TEST_F(ConnectionLimitsTest, AConnectionOfNoMemberHasFewCalls) {
  Start({.calls_of_others_max = 2});
  const auto client = NewClient();
  SilentCalls calls(*client);
  for (int i = 0; i < 3; ++i) calls.Open().WaitForInitialMetadata();
  EXPECT_EQ(calls.at(2).Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);

  ComeAsMember(*client, 3);
  for (int i = 0; i < 2; ++i) calls.Open().WaitForInitialMetadata();

  for (size_t i : {0, 1, 3, 4}) {
    calls.at(i).WritesDone();
    EXPECT_TRUE(calls.at(i).Finish().ok()) << i;
  }
}

TEST_F(ConnectionLimitsTest, WhoIsNoMemberMakesOnlySoManyCalls) {
  Start({.strangers_max = 1, .calls_at_once = 5, .calls_per_second = 1});
  const auto guest = NewClient();
  for (int i = 0; i < 5; ++i) ComeAsGuest(*guest);
  milliseconds_ += 2'000;
  ComeAsGuest(*guest);
  ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  AskOnceTooOften(*guest);

  AwaitCounts(0, 0, 0);
  log_.WaitFor("reason=\"no member makes so many calls\"");
  milliseconds_ += 10'000;
  const auto member = NewClient();
  for (int i = 0; i < 20; ++i) ComeAsMember(*member, 3);
  AwaitCounts(0, 0, 1);
}

TEST_F(ConnectionLimitsTest, WhoIsNoMemberSendsOnlySoMuchAndKeepsItsPlaceForThat) {
  Start({.strangers_max = 1,
         .bytes_at_once = 10'000,
         .bytes_per_second = 1'000,
         .bytes_grace = 5'000});

  const FileDescriptor flood = ConnectAndSend(20'000);

  AwaitCounts(0, 0, 0);
  milliseconds_ += 1'999;
  EXPECT_FALSE(connections_->HasPlace()) << "bytes prolong the time";
  milliseconds_ += 8'001;
  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionLimitsTest, AfterAFloodStrangersHaveFewPlacesForAMinute) {
  Start({.strangers_max = 4,
         .others_max_in_alarm = 1,
         .introduction_time = absl::Hours(1),
         .pressed_time = absl::Hours(1),
         .bytes_at_once = 10'000,
         .bytes_grace = 5'000});
  const FileDescriptor flood = ConnectAndSend(20'000);
  AwaitCounts(0, 0, 0);
  milliseconds_ += 10'000;
  const FileDescriptor one = TakeTheLastPlace();

  milliseconds_ += 50'000;
  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionLimitsTest, AStrangerThatSendsMuchAndGoesRaisesTheAlarmToo) {
  Start({.strangers_max = 4, .others_max_in_alarm = 1, .bytes_of_stranger = 1'000});
  (void)ConnectAndSend(2'000);
  AwaitCounts(0, 0, 0);
  milliseconds_ += 5'000;

  TakeTheLastPlace();
}

TEST_F(ConnectionLimitsTest, AGuestSendsLessAtOnceThanAStranger) {
  Start({.bytes_at_once_of_guest = 2'000, .bytes_per_second = 0, .bytes_for_each_sent = 0});
  const auto guest = NewClient();
  ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  grpc::ClientContext context;
  SetDeadline(context);
  context.AddMetadata("long", std::string(3'000, 'x'));
  v1::RunStatus reply;

  (void)guest->GetStatus(&context, {}, &reply);  // The answer may still arrive.

  AwaitCounts(0, 0, 0);
  log_.WaitFor("reason=\"no member sends so much\"");
}

TEST_F(ConnectionLimitsTest, WhatAGuestDidNotUseDoesNotPileUp) {
  Start({.calls_at_once = 5, .calls_per_second = 1});
  const auto guest = NewClient();
  ComeAsGuest(*guest);
  milliseconds_ += 50'000;
  for (int i = 0; i < 5; ++i) ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  AskOnceTooOften(*guest);

  AwaitCounts(0, 0, 0);
}

TEST_F(ConnectionLimitsTest, WhoSendsMuchWhileItWaitsTakesNoPlace) {
  Start({.strangers_max = 1});
  const FileDescriptor first = Connect();
  AwaitCounts(1, 0, 0);
  const FileDescriptor flood = Connect();
  const std::string bytes(5'000, 'x');
  EXPECT_EQ(send(flood.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 5'000);

  milliseconds_ += 2'000;

  EXPECT_TRUE(IsClosed(first));
  log_.WaitFor("reason=\"no member sends so much\"");
  AwaitCounts(0, 0, 0);
  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionLimitsTest, AStrangerMakesFewCallsBeforeItSaysWhoItIs) {
  Start({.strangers_max = 1, .calls_at_once_of_stranger = 2, .calls_per_second = 0});
  const auto client = NewClient();
  SilentCalls calls(*client);
  for (int i = 0; i < 2; ++i) calls.Open().WaitForInitialMetadata();
  calls.Open();

  log_.WaitFor("reason=\"no member makes so many calls\"");

  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(calls.at(i).Finish().error_code(), grpc::StatusCode::UNAVAILABLE) << i;
  }
}

TEST_F(ConnectionLimitsTest, AGuestThatCallsTooOftenKeepsItsPlace) {
  Start({.strangers_max = 1, .calls_at_once = 1, .calls_per_second = 1});
  const auto guest = NewClient();
  ComeAsGuest(*guest);
  AwaitCounts(0, 1, 0);
  AskOnceTooOften(*guest);

  AwaitCounts(0, 0, 0);
  EXPECT_FALSE(connections_->HasPlace());
  milliseconds_ += 10'000;
  EXPECT_TRUE(connections_->HasPlace());
}

TEST_F(ConnectionLimitsTest, AMemberThatSendsMoreThanItsMessagesIsShutOutForAWhile) {
  Start({.bytes_per_second = 0,
         .bytes_for_each_sent = 0,
         .bytes_at_once_of_member = 4'000,
         .bytes_around_message = 1'000});
  const auto client = NewClient();
  ComeAsMember(*client, 3);
  AwaitCounts(0, 0, 1);
  grpc::ClientContext context;
  SetDeadline(context);
  context.AddMetadata("long", std::string(6'000, 'x'));
  v1::RunStatus reply;
  (void)client->GetStatus(&context, {}, &reply);  // The answer may still arrive.
  milliseconds_ += 50;
  AwaitCounts(0, 0, 0);
  log_.WaitFor("a member sends more than messages");

  ComeAsMember(*NewClient(), 4);
  EXPECT_EQ(connections_->counts().of_members, 0u) << "from the same address";
  milliseconds_ += 60'000;
  const auto later = NewClient();
  ComeAsMember(*later, 4);
  AwaitCounts(0, 0, 1);
}

TEST_F(ConnectionLimitsTest, AMemberMaySendAsManyMessagesAsItLikes) {
  Start({.bytes_at_once_of_member = 4'000, .bytes_around_message = 1'000});
  const auto client = NewClient();
  for (int i = 0; i < 200; ++i) {
    ComeAsMember(*client, 3);
    milliseconds_ += 50;
  }

  EXPECT_EQ(connections_->counts().of_members, 1u);
  EXPECT_EQ(log_.Count("closed connections"), 0);
}

TEST_F(ConnectionLimitsTest, TheBytesOfACallThatHasEndedDoNotCountAgainstAMember) {
  Start({.bytes_per_second = 0, .bytes_for_each_sent = 0, .bytes_without_call = 1'000});
  const auto client = NewClient();
  ComeAsMember(*client, 3);
  AwaitCounts(0, 0, 1);
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    SetDeadline(context);
    context.AddMetadata("long", std::string(6'000, 'x'));
    v1::LeaveRequest request;
    request.mutable_identity()->set_worker(3);
    v1::LeaveReply reply;
    ASSERT_TRUE(client->Leave(&context, request, &reply).ok());
    for (int look = 0; look < 3; ++look) {
      milliseconds_ += 600;
      std::this_thread::sleep_for(std::chrono::milliseconds(60));  // At least one look.
    }
  }

  EXPECT_EQ(connections_->counts().of_members, 1u);
  EXPECT_EQ(log_.Count("closed connections"), 0);
}

}  // namespace
}  // namespace slipstream
