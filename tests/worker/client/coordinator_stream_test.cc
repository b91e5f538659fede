#include "worker/client/coordinator_stream.h"

#include <gtest/gtest.h>

#include "tests/support/fake_coordinator.h"

namespace slipstream {
namespace {

class CoordinatorStreamTest : public testing::Test {
 protected:
  static constexpr absl::Duration kPatience = absl::Seconds(20);

  CoordinatorStreamTest() { Answer(1); }

  void Answer(uint64_t evaluation) {
    v1::HeartbeatReply reply;
    reply.set_evaluation(evaluation);
    coordinator_.SetHeartbeatReply(reply);
  }

  /// Returns the number in the answer, or 0 after a failure. Stores the status in `status_`.
  uint64_t Ask(HeartbeatStream& stream) {
    v1::HeartbeatRequest request;
    request.set_wants_answer(true);
    const absl::StatusOr<v1::HeartbeatReply> reply = stream.Ask(request, absl::ZeroDuration());
    status_ = reply.status();
    return reply.ok() ? reply->evaluation() : 0;
  }

  FakeCoordinator coordinator_;
  CoordinatorClient client_{coordinator_.address(), {}, [](absl::Duration) { return true; }};
  HeartbeatStream stream_{client_};
  absl::Status status_;
};

TEST_F(CoordinatorStreamTest, AsksAgainAndAgainOverOneStream) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Ask(stream_), 1u) << status_;

  EXPECT_EQ(coordinator_.calls(), 3);
  EXPECT_EQ(coordinator_.streams(), 1);
}

TEST_F(CoordinatorStreamTest, WhatIsToldNeedsNoAnswerUntilThereIsNews) {
  ASSERT_EQ(Ask(stream_), 1u) << status_;
  for (int i = 0; i < 3; ++i) {
    const auto nothing = stream_.Tell({}, absl::ZeroDuration());
    ASSERT_TRUE(nothing.ok()) << nothing.status();
    EXPECT_FALSE(nothing->has_value());
  }

  Answer(2);

  const auto news = stream_.Tell({}, kPatience);
  ASSERT_TRUE(news.ok()) << news.status();
  ASSERT_TRUE(news->has_value());
  EXPECT_EQ((*news)->evaluation(), 2u);
}

TEST_F(CoordinatorStreamTest, OpensAgainAfterAFailureThatMayPass) {
  ASSERT_EQ(Ask(stream_), 1u);
  coordinator_.FailNext(2, {grpc::UNAVAILABLE, "not now"});

  EXPECT_EQ(Ask(stream_), 1u) << status_;
  EXPECT_EQ(coordinator_.streams(), 3);
}

TEST_F(CoordinatorStreamTest, PassesOnARefusalAndCanBeUsedAgain) {
  ASSERT_EQ(Ask(stream_), 1u);
  coordinator_.FailNext(1, {grpc::FAILED_PRECONDITION, "fenced"});

  EXPECT_EQ(Ask(stream_), 0u);
  EXPECT_EQ(status_, absl::FailedPreconditionError("fenced"));
  EXPECT_EQ(Ask(stream_), 1u) << status_;
}

TEST_F(CoordinatorStreamTest, GivesUpByNameACoordinatorOutOfReach) {
  // Port 1 of this machine is reserved, and no process listens there.
  CoordinatorClient::Options quick;
  quick.retry = {.first_wait = absl::Milliseconds(1),
                 .wait_max = absl::Milliseconds(2),
                 .give_up_after = absl::Milliseconds(100)};
  const CoordinatorClient nobody("127.0.0.1:1", quick, [](absl::Duration) { return true; });
  HeartbeatStream stream(nobody);

  EXPECT_EQ(Ask(stream), 0u);
  EXPECT_EQ(status_.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status_.message().find("127.0.0.1:1"), absl::string_view::npos) << status_;
}

TEST_F(CoordinatorStreamTest, AnAnswerThatDoesNotComeInTimeIsAskedForAgain) {
  CoordinatorClient::Options quick;
  quick.call_timeout = absl::Milliseconds(50);
  quick.retry.give_up_after = absl::Milliseconds(200);
  const CoordinatorClient hasty(coordinator_.address(), quick, [](absl::Duration) { return true; });
  HeartbeatStream stream(hasty);
  coordinator_.SetSilent(true);

  EXPECT_EQ(Ask(stream), 0u);
  EXPECT_EQ(status_.code(), absl::StatusCode::kUnavailable) << status_;
  EXPECT_GT(coordinator_.streams(), 1);

  coordinator_.SetSilent(false);
  EXPECT_EQ(Ask(stream), 1u) << status_;
}

}  // namespace
}  // namespace slipstream
