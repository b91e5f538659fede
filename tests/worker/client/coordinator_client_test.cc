#include "worker/client/coordinator_client.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "proto/shard.grpc.pb.h"
#include "tests/support/captured_log.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/loopback.h"
#include "tests/support/silent_port.h"
#include "worker/client/coordinator_stream.h"
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

TEST(AwaitRepetitionTest, PeopleAreToldOfAPeerThatIsAwayAndOfOneThatHasTooMuchToDo) {
  CapturedLog log;
  const SilentPort port;
  const CalledPeer peer = {"shard 1",
                           grpc::CreateChannel(port.address(), grpc::InsecureChannelCredentials())};
  for (const absl::Status& failure :
       {absl::UnavailableError("refused"), absl::ResourceExhaustedError("busy")}) {
    for (const auto news : {Repetition::News::kFirst, Repetition::News::kNone}) {
      ASSERT_TRUE(AwaitRepetition({.news = news}, peer, failure, DoNotWait).ok());
    }
    ASSERT_TRUE(AwaitRepetition({.news = Repetition::News::kLong}, peer, failure, DoNotWait).ok());
  }

  EXPECT_EQ(log.Count("waiting until it is ready"), 2);
  EXPECT_EQ(log.Count("cannot be reached, trying again"), 1);
  EXPECT_EQ(log.Count("has too much to do, trying again"), 1);
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
  CoordinatorClient client_{
      coordinator_.address(), {.now = [this] { return now_; }}, [this](absl::Duration wait) {
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
  quick.retry.first_wait = absl::Milliseconds(1);
  quick.retry.wait_max = absl::Milliseconds(2);
  // The pause between two tries lets the coordinator answer once a second stream has reached it.
  const CoordinatorClient hasty(coordinator_.address(), quick, [this](absl::Duration) {
    coordinator_.SetSilent(coordinator_.streams() < 2);
    return true;
  });
  HeartbeatStream stream(hasty);
  coordinator_.SetSilent(true);

  EXPECT_EQ(Ask(stream), 1u) << status_;
  EXPECT_GT(coordinator_.streams(), 1);
}

TEST_F(CoordinatorStreamTest, ACoordinatorThatStaysSilentIsGivenUp) {
  absl::Time now;
  CoordinatorClient::Options quick;
  quick.call_timeout = absl::Milliseconds(20);
  quick.retry.give_up_after = absl::Milliseconds(200);
  quick.now = [&now] { return now; };
  const CoordinatorClient hasty(coordinator_.address(), quick, [&now](absl::Duration wait) {
    now += wait;
    return true;
  });
  HeartbeatStream stream(hasty);
  coordinator_.SetSilent(true);

  EXPECT_EQ(Ask(stream), 0u);
  EXPECT_EQ(status_.code(), absl::StatusCode::kUnavailable) << status_;
}

}  // namespace

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
