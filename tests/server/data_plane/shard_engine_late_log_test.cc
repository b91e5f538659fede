// Tests of a shard whose log is late: what it takes and tells meanwhile, and how its process ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "server/data_plane/shard_service.h"
#include "tests/server/data_plane/shard_engine_log_fixture.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

class LateLogTest : public ShardEngineLogTest {
 protected:
  static constexpr absl::Duration kLong = absl::Seconds(20);

  bool HasTold(uint64_t sequence) { return calls_[sequence].has_answer(); }
};

TEST_F(LateLogTest, AMemberThatAwaitsNoAnswersFindsThatTheLogIsFull) {
  BeginTraining();
  disk_.Close(kLogFiles);
  uint64_t sequence = 0;
  uint64_t recorded = engine_->Recorded();
  // A push that the shard is not told of is none that it counts.
  for (;; ++sequence) {
    ASSERT_LT(sequence, 1'000'000u);
    Push(sequence + 1, sequence);
    if (engine_->Recorded() == recorded) break;
    recorded = engine_->Recorded();
  }
  const BegunPush begun = engine_->BeginPush(Header(sequence + 1, sequence));
  ASSERT_TRUE(begun.refusal.has_value());
  EXPECT_EQ(begun.refusal->outcome, PushOutcome::kRetryLater);
  EXPECT_EQ(engine_->Recorded(), recorded);

  disk_.Open();

  EXPECT_EQ(ReplyTo(sequence + 1).outcome, PushOutcome::kRetryLater);
  EXPECT_EQ(PushAndWait(sequence + 1, sequence).version, Version{sequence + 1});
}

TEST_F(LateLogTest, TheCoordinatorLearnsWhatTheLogHasAndTheServerIsHeard) {
  BeginTraining();
  engine_.reset();
  ShardService service(Options());
  ++orders_.number;
  service.OnOrders(orders_);
  const auto describe = [&](uint64_t orders_seen) {
    v1::SyncServerRequest report;
    report.set_orders_seen(orders_seen);
    service.Describe(report);
    return report;
  };
  Await([&] { return describe(orders_.number).initialized(); }, "the end of the redoing");
  const uint64_t number = orders_.number;
  disk_.Close(kLogFiles);
  ++orders_.number;
  orders_.view.members.push_back({WorkerId{1}, Incarnation{2}, true});
  service.OnOrders(orders_);

  const v1::SyncServerRequest late = describe(orders_.number);

  EXPECT_TRUE(late.initialized());
  EXPECT_EQ(late.orders_seen(), number) << "the orders that the log lacks";
  disk_.Open();
  Await([&] { return describe(orders_.number).orders_seen() == orders_.number; }, "its news");
}

TEST_F(LateLogTest, AProcessThatEndsTakesNoCallsAndWaitsForTheLog) {
  BeginTraining();
  disk_.Close(kLogFiles);
  Push(1, 0);
  disk_.AwaitSomebody();
  std::thread draining([this] { EXPECT_TRUE(engine_->Drain(kLong).ok()); });
  KeptCall refused;
  BegunPush begun;
  Await(
      [&] {
        begun = engine_->BeginPush(Header(2, 1));
        if (begun.refusal.has_value()) return true;
        PushAssembly unwanted(Header(2, 1), begun.push, begun.draft);
        engine_->AbandonPush(unwanted);
        return false;
      },
      "a refusal");
  EXPECT_EQ(begun.refusal->outcome, PushOutcome::kRetryLater);
  const uint64_t recorded = engine_->Recorded();
  KeptCall pull;
  Pull(pull, 0);
  EXPECT_EQ(engine_->Recorded(), recorded);
  EXPECT_FALSE(HasTold(1));

  disk_.Open();
  draining.join();

  Await([&] { return pull.has_answer(); }, "the refusal of the pull");
  EXPECT_EQ(pull.answer().refusal.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReplyTo(1).version, Version{1});
  EXPECT_TRUE(LostLog().ok());
  Kill();
  AwaitInitialized();
  EXPECT_EQ(PullAndWait().version, 1u);
}

TEST_F(LateLogTest, APushThatArrivesWhileTheProcessEndsIsNotDecidedAbout) {
  BeginTraining();
  const BegunPush begun = engine_->BeginPush(Header(1, 0));
  ASSERT_FALSE(begun.refusal.has_value());
  EXPECT_TRUE(engine_->Drain(kLong).ok());

  PushAssembly push(Header(1, 0), begun.push, begun.draft);
  ReceivedValues::Buffer ones = ReceivedValues::MakeBuffer(kValues);
  std::ranges::fill(ones.to, 1.0f);
  ASSERT_TRUE(push.Add(0, std::move(ones.values)).ok());
  const std::optional<Answer> answer = engine_->FinishPush(std::move(push), &calls_[1]);
  if (answer.has_value()) calls_[1].OnAnswer(*answer);

  EXPECT_EQ(ReplyTo(1).outcome, PushOutcome::kRetryLater);
  EXPECT_EQ(engine_->Report().version(), 0u);
}

TEST_F(LateLogTest, ALogThatIsLateAtTheEndOfTheProcessIsLost) {
  BeginTraining();
  disk_.Close(kLogFiles);
  Push(1, 0);

  (void)engine_->Drain(absl::Milliseconds(1));

  EXPECT_THAT(std::string(LostLog().message()), HasSubstr(DirectoryOfShard()));
  EXPECT_FALSE(HasTold(1));
  EXPECT_TRUE(engine_->Cancel(&calls_[1])) << "or the end would wait for its answer";
}

TEST_F(LateLogTest, AShardThatHasGoneOnIsDrainedOnceItsLastVersionIsSaved) {
  BeginTraining();
  EXPECT_EQ(PushAndWait(1, 0).version, Version{1});
  Kill();
  AwaitInitialized();
  disk_.Close("checkpoint-");
  orders_.phase = Phase::kDraining;
  GiveOrders();
  disk_.AwaitSomebody();
  EXPECT_FALSE(engine_->Drained());

  disk_.Open();

  AwaitSaved(1);
  EXPECT_TRUE(engine_->Drained());
}

}  // namespace
}  // namespace slipstream
