#include "worker/training/heartbeat.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/process/exit_code.h"
#include "tests/support/fake_coordinator.h"

namespace slipstream {
namespace {

class HeartbeatTest : public testing::Test {
 protected:
  HeartbeatTest() : client_(coordinator_.address(), {}, [](absl::Duration) { return true; }) {}

  static v1::HeartbeatReply Reply(v1::Phase phase, uint64_t evaluation = 0) {
    v1::HeartbeatReply reply;
    reply.set_phase(phase);
    reply.set_evaluation(evaluation);
    return reply;
  }

  /// Waits for the interruption, at most as long as the test may run.
  void AwaitInterruption() {
    while (interruption_.Sleep(absl::Hours(1))) continue;
  }

  FakeCoordinator coordinator_;
  CoordinatorClient client_;
  StepFigures figures_;
  ServerAddresses servers_;
  Interruption interruption_;
};

TEST_F(HeartbeatTest, KeepsBeatingThroughALease) {
  coordinator_.SetHeartbeatReply(Reply(v1::TRAINING));
  const Heartbeat heartbeat(client_, {}, absl::Milliseconds(3), figures_, servers_, interruption_);

  while (coordinator_.calls() < 3) std::this_thread::yield();

  EXPECT_FALSE(interruption_.interrupted());
}

TEST_F(HeartbeatTest, HearsOfTheEndOfTheRun) {
  coordinator_.SetHeartbeatReply(Reply(v1::FINISHED));
  Heartbeat heartbeat(client_, {}, absl::Seconds(1), figures_, servers_, interruption_);

  EXPECT_TRUE(heartbeat.AwaitEnd().ok());
}

TEST_F(HeartbeatTest, AFencedWorkerIsInterrupted) {
  coordinator_.FailNext(1, {grpc::FAILED_PRECONDITION, "fenced"});
  const Heartbeat heartbeat(client_, {}, absl::Milliseconds(3), figures_, servers_, interruption_);

  AwaitInterruption();

  EXPECT_EQ(interruption_.failure(), absl::FailedPreconditionError("fenced"));
}

TEST_F(HeartbeatTest, AFailedRunInterruptsWithItsReason) {
  v1::HeartbeatReply reply = Reply(v1::FAILED);
  reply.set_failure("a server was lost");
  coordinator_.SetHeartbeatReply(reply);
  const Heartbeat heartbeat(client_, {}, absl::Milliseconds(3), figures_, servers_, interruption_);

  AwaitInterruption();

  EXPECT_EQ(interruption_.failure(), RunFailedError("the run failed: a server was lost"));
}

TEST_F(HeartbeatTest, HandsOutAnOrderOnce) {
  coordinator_.SetHeartbeatReply(Reply(v1::TRAINING, 4));
  Heartbeat heartbeat(client_, {}, absl::Milliseconds(3), figures_, servers_, interruption_);

  EXPECT_EQ(heartbeat.AwaitOrder(0)->number, 4u);
  coordinator_.SetHeartbeatReply(Reply(v1::EVALUATING, 5));
  EXPECT_EQ(heartbeat.AwaitOrder(4)->number, 5u);
  heartbeat.Close();
  EXPECT_FALSE(heartbeat.AwaitOrder(5));
}

TEST_F(HeartbeatTest, AWaitForTheEndIsOverWithAnOrder) {
  coordinator_.SetHeartbeatReply(Reply(v1::EVALUATING, 4));
  Heartbeat heartbeat(client_, {}, absl::Milliseconds(3), figures_, servers_, interruption_);

  EXPECT_FALSE(*heartbeat.AwaitEndOrOrder(3));
  EXPECT_TRUE(heartbeat.HasOrder(3));
  EXPECT_FALSE(heartbeat.HasOrder(4));
  coordinator_.SetHeartbeatReply(Reply(v1::FINISHED));
  EXPECT_TRUE(*heartbeat.AwaitEndOrOrder(4));
}

TEST_F(HeartbeatTest, TellsTheSpeedWhereItIsAskedForAndHearsOfTheSteps) {
  StepFigures::Step step;
  step.forward_begin = absl::Now();
  step.backward_end = step.forward_begin + absl::Milliseconds(250);
  for (size_t i = 0; i < StepFigures::kSpeedSteps; ++i) figures_.OnStep(step);
  v1::HeartbeatReply reply = Reply(v1::TRAINING);
  reply.set_steps(3);
  coordinator_.SetHeartbeatReply(reply);
  {
    const Heartbeat silent(client_, {}, absl::Milliseconds(3), figures_, servers_, interruption_);
    while (silent.orders().steps == 0) std::this_thread::yield();
    EXPECT_EQ(silent.orders().steps, 3u);
    EXPECT_EQ(coordinator_.last_heartbeat().steps_per_second(), 0);
  }
  const Heartbeat telling(client_, {}, absl::Milliseconds(3), figures_, servers_, interruption_,
                          true);

  while (coordinator_.last_heartbeat().steps_per_second() == 0) std::this_thread::yield();

  EXPECT_DOUBLE_EQ(coordinator_.last_heartbeat().steps_per_second(), 4);
}

TEST_F(HeartbeatTest, HearsWhereServersAreNow) {
  servers_.Note({"a:1", "b:1"});
  v1::HeartbeatReply reply = Reply(v1::TRAINING);
  coordinator_.SetHeartbeatReply(reply);
  const Heartbeat heartbeat(client_, {}, absl::Milliseconds(3), figures_, servers_, interruption_);
  while (coordinator_.calls() < 2) std::this_thread::yield();
  EXPECT_EQ(servers_.Of(ShardId{1}), "b:1") << "an answer without addresses is no news";

  for (const char* address : {"a:1", "b:2"}) reply.add_servers(address);
  coordinator_.SetHeartbeatReply(reply);

  while (servers_.Of(ShardId{1}) == "b:1") std::this_thread::yield();
  EXPECT_EQ(servers_.Of(ShardId{0}), "a:1");
  EXPECT_EQ(servers_.Of(ShardId{1}), "b:2");
}

TEST_F(HeartbeatTest, HearsThatWorkEndsAndSaysWhenThisWorkerIsDone) {
  v1::HeartbeatReply reply = Reply(v1::TRAINING);
  reply.set_work_ends(true);
  coordinator_.SetHeartbeatReply(reply);
  const Heartbeat heartbeat(client_, {}, absl::Milliseconds(3), figures_, servers_, interruption_);

  while (!heartbeat.orders().work_ends) std::this_thread::yield();
  EXPECT_FALSE(coordinator_.last_heartbeat().done_pushing());
  figures_.OnDone({{7, 3}}, absl::Now());

  while (!coordinator_.last_heartbeat().done_pushing()) std::this_thread::yield();
  ASSERT_EQ(coordinator_.last_heartbeat().progress_size(), 1);
  EXPECT_EQ(coordinator_.last_heartbeat().progress(0).batches_done(), 3u);
}

}  // namespace
}  // namespace slipstream
