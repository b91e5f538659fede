// Tests of what a shard records, and of another process that goes on from it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/data_plane/shard_redo_fixture.h"
#include "tests/support/specs.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

constexpr ConsistencySpec kAsync = {ConsistencySpec::Policy::kAsync};

class ShardRedoTest : public testing::Test {
 protected:
  /// Begins a run of two workers. Its version 0 is saved.
  void Start(const ConsistencySpec& consistency, uint32_t versions_kept = 1) {
    options_.run.consistency = consistency;
    options_.run.optimizer.learning_rate = 1.0;
    options_.run.readers.versions_kept = versions_kept;
    options_.run.durability.level = DurabilitySpec::Level::kSynced;
    shard_ = std::make_unique<Shard>(options_);
    shard_->SetRecorder(events_);
    orders_ = RecordedRun::OrdersFor(2);
    shard_->OnOrders(orders_);
    ASSERT_TRUE(RecordedRun::GiveInitialWeights(
                    orders_, std::vector<float>(RecordedRun::kCount, 0.0f), *shard_)
                    .ok());
    DoJobs();
    ASSERT_EQ(saves_.size(), 1u);
    Order([](ServerOrders& orders) { orders.phase = Phase::kTraining; });
  }

  template <typename Change>
  void Order(Change change) {
    ++orders_.number;
    change(orders_);
    shard_->OnOrders(orders_);
  }

  void DoJobs() {
    while (shard_->has_job()) {
      ShardJob job = shard_->TakeJob();
      job.Run();
      const ShardResult result = shard_->FinishJob(std::move(job));
      if (result.save != nullptr) saves_.emplace_back(*result.save);
    }
  }

  PushHeader HeaderOf(uint32_t worker, uint64_t sequence, uint64_t base) const {
    return {.identity = {RecordedRun::kRun, WorkerId{worker}, Incarnation{worker + 1}},
            .sequence = Sequence{sequence},
            .shard_map = orders_.model->shard_map.fingerprint(),
            .base = Version{base},
            .count = RecordedRun::kCount,
            .examples = 32};
  }

  /// Pushes ones.
  PushReply Push(uint32_t worker, uint64_t sequence, uint64_t base) {
    const PushHeader header = HeaderOf(worker, sequence, base);
    const BegunPush begun = shard_->BeginPush(header);
    if (begun.refusal.has_value()) return *begun.refusal;
    const std::vector<float> ones(RecordedRun::kCount, 1.0f);
    PushAssembly push = RecordedRun::PushOf(header, ones, begun);
    return shard_->FinishPush(CallId{++calls_}, push).record->reply;
  }

  /// Returns the shard of another process, which has been told all events behind the newest save.
  std::unique_ptr<Shard> NextProcess() {
    auto next = std::make_unique<Shard>(options_);
    BeginRedo(saves_.back(), *orders_.model, *next);
    Redo(events_.From(saves_.back().log), *next);
    return next;
  }

  /// Ends the process, and has the next one go on.
  void EndProcess() {
    shard_ = NextProcess();
    shard_->SetRecorder(events_);
    shard_->EndRedo();
  }

  Version published() const { return shard_->machine().published(); }
  float first_value() const { return shard_->weights()->values().front(); }

  Shard::Options options_;
  ServerOrders orders_;
  EventList events_;
  std::vector<SavedShard> saves_;
  std::unique_ptr<Shard> shard_;
  uint64_t calls_ = 0;
};

TEST_F(ShardRedoTest, ASaveHasTheEventThatOrderedIt) {
  Start(kAsync);
  Push(0, 1, 0);
  Order([](ServerOrders& orders) { orders.save.number = 1; });
  const size_t behind = events_.size();
  DoJobs();

  ASSERT_EQ(saves_.back().version, Version{1});
  EXPECT_EQ(events_.BeginOf(saves_.back().log), behind);
}

TEST_F(ShardRedoTest, ASaveHasTheWeightsOfJobsThatWereUnfinished) {
  Start(kAsync);
  Push(0, 1, 0);
  Order([](ServerOrders& orders) { orders.save.number = 1; });
  DoJobs();
  ASSERT_EQ(saves_.back().version, Version{1});
  events_.CutTo(events_.BeginOf(saves_.back().log));

  EndProcess();

  EXPECT_EQ(published(), Version{1});
  EXPECT_EQ(first_value(), -1.0f);
  EXPECT_FALSE(shard_->has_job());
}

TEST_F(ShardRedoTest, GoesOnInTheSameGenerationAndKnowsItsPushes) {
  Start(kAsync);
  EXPECT_EQ(Push(0, 1, 0).outcome, PushOutcome::kApplied);
  DoJobs();
  EXPECT_EQ(Push(1, 1, 0).outcome, PushOutcome::kApplied);
  DoJobs();

  EndProcess();

  EXPECT_EQ(shard_->machine().generation(), Generation{});
  EXPECT_EQ(published(), Version{2});
  EXPECT_EQ(first_value(), -2.0f);
  const PushReply again = Push(1, 1, 0);
  EXPECT_EQ(again.outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(again.first_outcome, PushOutcome::kApplied);
  EXPECT_EQ(again.version, Version{2});
  EXPECT_EQ(Push(1, 2, 2).outcome, PushOutcome::kApplied);
}

TEST_F(ShardRedoTest, KeepsThePushesOfTheOpenRound) {
  Start(Softsync(1));
  EXPECT_EQ(Push(0, 1, 0).outcome, PushOutcome::kBuffered);

  EndProcess();

  EXPECT_EQ(Push(0, 1, 0).outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(Push(1, 1, 0).outcome, PushOutcome::kApplied);
  DoJobs();
  EXPECT_EQ(published(), Version{1});
  EXPECT_EQ(first_value(), -1.0f);
}

TEST_F(ShardRedoTest, JobsThatWereNotFinishedAreDoneByTheNextProcess) {
  Start(kAsync);
  Push(0, 1, 0);

  EndProcess();

  EXPECT_EQ(published(), Version{0});
  EXPECT_GT(shard_->machine().bytes_queued(), 0u);
  EXPECT_TRUE(shard_->has_job());
  DoJobs();
  EXPECT_EQ(published(), Version{1});
  EXPECT_EQ(first_value(), -1.0f);
  EXPECT_EQ(shard_->machine().bytes_queued(), 0u);
}

TEST_F(ShardRedoTest, ASaveThatDidNotComeToTheDiskIsMadeByTheNextProcess) {
  Start(kAsync);
  Push(0, 1, 0);
  Order([](ServerOrders& orders) { orders.save.number = 1; });
  DoJobs();
  ASSERT_EQ(saves_.size(), 2u);
  saves_.pop_back();

  EndProcess();
  DoJobs();

  ASSERT_EQ(saves_.size(), 2u);
  EXPECT_EQ(saves_.back().version, Version{1});
  // Nothing is missing behind the new save, either.
  Push(0, 2, 1);
  DoJobs();
  EndProcess();
  EXPECT_EQ(published(), Version{2});
}

TEST_F(ShardRedoTest, VersionsBeforeTheCheckpointAreNotKept) {
  Start(kAsync, /*versions_kept=*/3);
  for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
    Push(0, sequence, sequence - 1);
    DoJobs();
  }
  Order([](ServerOrders& orders) { orders.save.number = 1; });
  DoJobs();
  Push(0, 4, 3);
  DoJobs();
  ASSERT_EQ(shard_->machine().oldest_kept(), Version{2});

  EndProcess();

  shard_->machine().CheckInvariants();
  EXPECT_EQ(shard_->machine().oldest_kept(), Version{3});
}

TEST_F(ShardRedoTest, CallsOfTheProcessThatEndedAreGone) {
  Start(kAsync);
  const PullRequest pull = {.shard_map = orders_.model->shard_map.fingerprint()};
  ASSERT_EQ(shard_->Pull(CallId{50}, pull).answers.size(), 1u);
  PullRequest waits = pull;
  waits.min_version = Version{9};
  ASSERT_TRUE(shard_->Pull(CallId{51}, waits).answers.empty());
  ASSERT_FALSE(shard_->BeginPush(HeaderOf(0, 1, 0)).refusal.has_value());

  EndProcess();

  EXPECT_EQ(shard_->machine().waiting(), 0u);
  EXPECT_EQ(shard_->machine().pulls_under_way(), 0u);
  EXPECT_EQ(shard_->machine().bytes_queued(), 0u);
  // The names of the calls are free.
  EXPECT_EQ(shard_->Pull(CallId{51}, pull).answers.size(), 1u);
  EXPECT_TRUE(shard_->FinishPull(CallId{51}, std::nullopt).answers.empty());
}

/// The log ends before the call was cancelled, but the checkpoint behind it came to the disk. It
/// lacks the weights of version 1, as nobody got them.
TEST_F(ShardRedoTest, ACallOfTheProcessThatEndedIsNotGivenWeightsThatAreMissing) {
  options_.run.optimizer.staleness_scaling = StalenessScaling::kDelayCompensated;
  Start(kAsync);
  const auto pull_of = [this](uint32_t worker, uint64_t sequence, uint64_t min_version) {
    return PullRequest{.identity = HeaderOf(worker, sequence, 0).identity,
                       .shard_map = orders_.model->shard_map.fingerprint(),
                       .min_version = Version{min_version},
                       .trains = true,
                       .sequence = Sequence{sequence}};
  };
  const PullRequest first = pull_of(1, 1, 0);
  ASSERT_EQ(shard_->Pull(CallId{50}, first).answers.size(), 1u);
  shard_->FinishPull(CallId{50}, ReaderOf(first));
  EXPECT_EQ(Push(0, 1, 0).version, Version{1});
  EXPECT_EQ(Push(1, 1, 0).version, Version{2});
  ASSERT_TRUE(shard_->Pull(CallId{51}, pull_of(0, 2, 1)).answers.empty());
  Order([](ServerOrders& orders) { orders.save.number = 1; });
  ASSERT_TRUE(shard_->Cancel(CallId{51}));
  DoJobs();
  ASSERT_EQ(saves_.back().version, Version{2});
  events_.CutTo(events_.BeginOf(saves_.back().log));

  EndProcess();

  EXPECT_EQ(published(), Version{2});
  EXPECT_TRUE(shard_->bases().empty());
}

TEST_F(ShardRedoTest, TakesNoCallsBeforeTheEndOfTheLog) {
  Start(kAsync);
  shard_ = NextProcess();

  const ShardResult pulled =
      shard_->Pull(CallId{1}, {.shard_map = orders_.model->shard_map.fingerprint()});
  ASSERT_EQ(pulled.answers.size(), 1u);
  EXPECT_EQ(pulled.answers.front().refusal.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Push(0, 1, 0).outcome, PushOutcome::kRetryLater);
  EXPECT_TRUE(shard_->is_returning());
  shard_->EndRedo();
  EXPECT_EQ(Push(0, 1, 0).outcome, PushOutcome::kApplied);
}

TEST_F(ShardRedoTest, RecordsNothingWhereNothingChanges) {
  Start(kAsync);
  const size_t events = events_.size();

  EXPECT_FALSE(shard_->Cancel(CallId{77}));
  shard_->BeginReturn();
  EXPECT_TRUE(shard_->BeginPush(HeaderOf(0, 1, 0)).refusal.has_value());
  shard_->Pull(CallId{1}, {.shard_map = orders_.model->shard_map.fingerprint()});

  EXPECT_EQ(events_.size(), events);
}

TEST_F(ShardRedoTest, InitialWeightsEndARedo) {
  Start(kAsync);
  ServerOrders again = RecordedRun::OrdersFor(2);
  auto other = std::make_unique<Shard>(options_);
  EventList events;
  other->SetRecorder(events);
  other->OnOrders(again);
  const std::vector<float> ones(RecordedRun::kCount, 1.0f);
  ASSERT_TRUE(RecordedRun::GiveInitialWeights(again, ones, *other).ok());
  std::swap(shard_, other);
  DoJobs();
  ++again.number;
  ++again.grant;
  shard_->OnOrders(again);
  ASSERT_TRUE(RecordedRun::GiveInitialWeights(again, ones, *shard_).ok());
  ASSERT_EQ(events.size(), 2u);

  Shard next(options_);
  BeginRedo(saves_.back(), *again.model, next);
  ASSERT_TRUE(next.Redo(events.From(1)[0].event, {}).ok());
  const absl::Status ended = next.Redo(events.From(1)[1].event, {});

  EXPECT_EQ(ended.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("initial weights"));
}

TEST_F(ShardRedoTest, AnEventThatNoShardRecordsIsNoticed) {
  Start(kAsync);
  const size_t before = events_.size();
  Push(0, 1, 0);
  const EventList::Event header = events_.From(1)[before];
  const EventList::Event push = events_.From(1)[before + 1];
  Shard next(options_);
  BeginRedo(saves_.back(), *orders_.model, next);
  Redo(events_.From(saves_.back().log).first(before), next);
  const auto redo = [&next](const std::string& event) { return next.Redo(event, {}).code(); };

  EXPECT_EQ(redo(""), absl::StatusCode::kDataLoss);
  EXPECT_EQ(redo(header.event.substr(0, 20)), absl::StatusCode::kDataLoss);
  EXPECT_EQ(redo(header.event + "x"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(redo("\x7f"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(redo(EncodeEvent(ShardEvent::kJobDone)), absl::StatusCode::kDataLoss);
  EXPECT_EQ(redo(EncodeEvent(ShardEvent::kPullDone, CallId{3}, Reader())),
            absl::StatusCode::kDataLoss);
  ASSERT_EQ(redo(header.event), absl::StatusCode::kOk);
  EXPECT_EQ(redo(push.event), absl::StatusCode::kDataLoss) << "its values are missing";
}

TEST_F(ShardRedoTest, WithoutARecorderASaveIsOfNoLog) {
  options_.run.durability.level = DurabilitySpec::Level::kCheckpoint;
  shard_ = std::make_unique<Shard>(options_);
  orders_ = RecordedRun::OrdersFor(2);
  shard_->OnOrders(orders_);
  const std::vector<float> ones(RecordedRun::kCount, 1.0f);
  ASSERT_TRUE(RecordedRun::GiveInitialWeights(orders_, ones, *shard_).ok());

  DoJobs();

  ASSERT_EQ(saves_.size(), 1u);
  EXPECT_EQ(saves_.back().log, 0u);
}

}  // namespace
}  // namespace slipstream
