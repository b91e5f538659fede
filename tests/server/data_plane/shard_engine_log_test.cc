// Tests of a shard with a log (durability.level synced): what it tells, and when, and how another
// process goes on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/storage/checkpoint_manifest.h"
#include "tests/server/data_plane/shard_engine_log_fixture.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

TEST_F(ShardEngineLogTest, APushIsAnsweredOnceTheLogHasIt) {
  BeginTraining();
  disk_.Close(kLogFiles);
  Push(1, 0);
  disk_.AwaitSomebody();
  EXPECT_FALSE(calls_[1].has_answer());
  EXPECT_FALSE(engine_->Cancel(&calls_[1])) << "its answer is on the way";

  disk_.Open();

  const PushReply reply = ReplyTo(1);
  EXPECT_EQ(reply.outcome, PushOutcome::kApplied);
  EXPECT_EQ(reply.version, Version{1});
}

TEST_F(ShardEngineLogTest, AllEventsOfAPushShareOneSync) {
  BeginTraining();
  PushAndWait(1, 0);
  const uint64_t batches = engine_->Report().log().batches();
  const uint64_t events = engine_->Report().log().events();
  const BegunPush begun = engine_->BeginPush(Header(2, 1));
  PushAssembly unwanted(Header(2, 1), begun.push, begun.draft);
  engine_->AbandonPush(unwanted);

  PushAndWait(2, 1);

  EXPECT_EQ(engine_->Report().log().batches(), batches + 1);
  EXPECT_GE(engine_->Report().log().events(), events + 5)
      << "the header and the end of the push that was abandoned are in that batch, too";
}

TEST_F(ShardEngineLogTest, NothingIsToldOfAPushThatTheLogLacks) {
  BeginTraining();
  disk_.Close(kLogFiles);
  Push(1, 0);
  disk_.AwaitSomebody();
  // A push that comes too early, and a pull of the version that is made.
  const BegunPush early = engine_->BeginPush(Header(9, 0));
  ASSERT_TRUE(early.refusal.has_value());
  KeptCall refused;
  EXPECT_FALSE(engine_->Refuse(*early.refusal, &refused).has_value());
  KeptCall pull;
  Pull(pull, 1);
  KeptCall older;
  Pull(older, 0);
  EXPECT_FALSE(refused.has_answer());
  EXPECT_FALSE(pull.has_answer());
  EXPECT_FALSE(older.has_answer());

  disk_.Open();

  Await([&] { return refused.has_answer() && pull.has_answer() && older.has_answer(); },
        "the answers");
  EXPECT_EQ(pull.answer().header->version, Version{1});
}

TEST_F(ShardEngineLogTest, TheTrailerOfWeightsNamesNoVersionThatTheLogLacks) {
  BeginTraining();
  KeptCall pull;
  Pull(pull, 0);
  Await([&] { return pull.has_answer(); }, "version 0");
  disk_.Close(kLogFiles);
  Push(1, 0);
  Await([this] { return engine_->Progress().version() == 1; }, "version 1");
  EXPECT_EQ(engine_->TrailerOf(pull.answer())->newest, Version{0});

  disk_.Open();
  ReplyTo(1);
  Await([&] { return engine_->TrailerOf(pull.answer())->newest == Version{1}; }, "its name");
}

TEST_F(ShardEngineLogTest, IsInitializedOnceItsWeightsAreOnTheDisk) {
  StartProcess();
  disk_.Close("checkpoint-");
  SendInitialWeights(0.0f);
  disk_.AwaitSomebody();
  EXPECT_FALSE(engine_->Initialized());
  disk_.Open();
  AwaitInitialized();
  AwaitSaved(0);
}

TEST_F(ShardEngineLogTest, ServesNobodyBeforeTheCoordinatorHasHeardWhereItGoesOn) {
  BeginTraining();
  EXPECT_EQ(PushAndWait(1, 0).version, Version{1});
  Kill();
  Await([this] { return engine_->Initialized(); }, "weights that are safe");

  EXPECT_TRUE(engine_->AwaitsCoordinator());
  engine_->OnCoordinatorAnswered();  // What it was told before.
  EXPECT_EQ(engine_->BeginPush(Header(2, 1)).refusal->outcome, PushOutcome::kRetryLater);
  KeptCall pull;
  Pull(pull, 0);
  EXPECT_TRUE(absl::IsUnavailable(pull.answer().refusal)) << pull.answer().refusal;

  TellCoordinator();
  EXPECT_FALSE(engine_->AwaitsCoordinator());
  EXPECT_EQ(PushAndWait(2, 1).version, Version{2});
}

TEST_F(ShardEngineLogTest, AnotherProcessGoesOnInTheSameGeneration) {
  BeginTraining();
  EXPECT_EQ(PushAndWait(1, 0).version, Version{1});
  OrderSave();
  EXPECT_EQ(PushAndWait(2, 1).version, Version{2});
  AwaitSaved(1);
  EXPECT_EQ(PushAndWait(3, 2).version, Version{3});

  Kill();
  AwaitInitialized();

  EXPECT_EQ(engine_->CurrentGeneration(), Generation{});
  const Pulled pulled = PullAndWait();
  EXPECT_EQ(pulled.version, 3u);
  EXPECT_EQ(pulled.value, -3.0f);
  const PushReply repeated = PushAndWait(3, 2);
  EXPECT_EQ(repeated.outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(repeated.version, Version{3});
  EXPECT_EQ(PushAndWait(4, 3).version, Version{4});
  EXPECT_EQ(PullAndWait(4).value, -4.0f);
  EXPECT_GT(engine_->Report().log().events_redone(), 0u);
  EXPECT_EQ(log_.Count("went on from the log"), 1);
}

TEST_F(ShardEngineLogTest, GoesOnAgainAndAgain) {
  BeginTraining();
  for (uint64_t version = 0; version < 6; ++version) {
    EXPECT_EQ(PushAndWait(version + 1, version).version, Version{version + 1});
    if (version == 3) OrderSave();
    Kill();
    AwaitInitialized();
  }
  EXPECT_EQ(PullAndWait().value, -6.0f);
}

TEST_F(ShardEngineLogTest, WhatWasNotSyncedWasNeverToldAndMayComeAgain) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    BeginTrainingOnNewDisk();
    EXPECT_EQ(PushAndWait(1, 0).version, Version{1});
    disk_.Close(kLogFiles);
    Push(2, 1);
    disk_.AwaitSomebody();

    Kill(seed);
    EXPECT_FALSE(calls_[2].has_answer());
    calls_.clear();
    AwaitInitialized();

    // The crash may have left it on the disk, or not.
    const PushOutcome outcome = PushAndWait(2, 1).outcome;
    EXPECT_TRUE(outcome == PushOutcome::kApplied || outcome == PushOutcome::kDuplicate) << seed;
    EXPECT_EQ(PullAndWait(2).value, -2.0f) << seed;
  }
}

TEST_F(ShardEngineLogTest, RefusesCallsWhileItRedoesTheLog) {
  BeginTraining();
  EXPECT_EQ(PushAndWait(1, 0).version, Version{1});
  disk_.StopMachine();
  engine_.reset();
  disk_.disk().Crash();
  disk_.Close(kLogFiles);

  StartProcess();
  disk_.AwaitSomebody();

  EXPECT_FALSE(engine_->Initialized());
  EXPECT_EQ(PushAndWait(2, 1).outcome, PushOutcome::kRetryLater);
  KeptCall pull;
  Pull(pull, 0);
  EXPECT_EQ(pull.answer().refusal.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(pull.answer().refusal.message()), HasSubstr("RETRY_LATER"));
  disk_.Open();
  AwaitInitialized();
  EXPECT_EQ(PushAndWait(2, 1).version, Version{2});
}

TEST_F(ShardEngineLogTest, ServesItsWeightsAgainWhenTheRunHasFinished) {
  BeginTraining();
  EXPECT_EQ(PushAndWait(1, 0).version, Version{1});
  orders_.phase = Phase::kFinished;
  GiveOrders();

  Kill();
  AwaitInitialized();
  EXPECT_EQ(PullAndWait().value, -1.0f);
}

TEST_F(ShardEngineLogTest, BeforeTrainingTheInitialWeightsComeAnew) {
  StartProcess();
  SendInitialWeights(5.0f);
  AwaitInitialized();

  Kill();
  EXPECT_FALSE(engine_->Initialized());
  ++orders_.grant;
  GiveOrders();
  SendInitialWeights(0.0f);
  AwaitInitialized();
  orders_.phase = Phase::kTraining;
  GiveOrders();
  EXPECT_EQ(PushAndWait(1, 0).version, Version{1});

  Kill();
  AwaitInitialized();
  EXPECT_EQ(PullAndWait().value, -1.0f);
}

TEST_F(ShardEngineLogTest, TakesAnOlderCheckpointAndALongerLogIfTheNewestIsDamaged) {
  int times = 0;
  for (const char* file : {kManifestFile, kStateFile, kWeightsFile}) {
    SCOPED_TRACE(file);
    BeginTrainingOnNewDisk();
    EXPECT_EQ(PushAndWait(1, 0).version, Version{1});
    OrderSave();
    EXPECT_EQ(PushAndWait(2, 1).version, Version{2});
    AwaitSaved(1);
    EXPECT_EQ(PushAndWait(3, 2).version, Version{3});
    disk_.StopMachine();
    engine_.reset();
    disk_.disk().Crash();
    const std::string damaged = DirectoryOfShard() + "/checkpoint-0-1/" + file;
    std::string& bytes = disk_.disk().BytesOf(damaged);
    bytes[bytes.size() / 2] ^= 1;

    StartProcess();
    AwaitInitialized();

    EXPECT_EQ(log_.Count(damaged + ": damaged"), 1);
    EXPECT_EQ(log_.Count("went on from the log checkpoint=0 version=3"), ++times);
    EXPECT_EQ(PullAndWait().value, -3.0f);
    EXPECT_EQ(PushAndWait(3, 2).outcome, PushOutcome::kDuplicate);
  }
}

TEST_F(ShardEngineLogTest, DamageInTheMiddleOfTheLogIsNamed) {
  BeginTraining();
  for (uint64_t version = 0; version < 3; ++version) PushAndWait(version + 1, version);
  disk_.StopMachine();
  engine_.reset();
  disk_.disk().Crash();
  const std::string segment = NewestSegment();
  disk_.disk().BytesOf(segment).at(2 * kSectorBytes) ^= 1;

  StartProcess();
  Await([this] { return !LostLog().ok(); }, "the failure");

  EXPECT_TRUE(absl::IsDataLoss(LostLog()));
  EXPECT_THAT(std::string(LostLog().message()), HasSubstr(segment));
  EXPECT_FALSE(engine_->Initialized());
}

TEST_F(ShardEngineLogTest, AnEventThatNoShardRecordsIsNamedByItsPlace) {
  BeginTraining();
  PushAndWait(1, 0);
  disk_.StopMachine();
  engine_.reset();
  disk_.disk().Crash();
  const std::string directory = DirectoryOfShard();
  const uint64_t number = ListSegments(disk_, directory)->back() + 1;
  auto segment = LogSegmentWriter::Create(disk_, directory, number);
  ASSERT_TRUE(segment.ok()) << segment.status();
  const EventsOfLog::Event event = {.event = "no event", .payload = {}};
  std::vector<LogSegmentWriter::Record> records;
  AddRecords(event, records);
  ASSERT_TRUE(segment->Append(records).ok());

  StartProcess();
  Await([this] { return !LostLog().ok(); }, "the failure");

  EXPECT_TRUE(absl::IsDataLoss(LostLog()));
  EXPECT_THAT(std::string(LostLog().message()),
              HasSubstr(SegmentPath(directory, number) + ": a record of the batch at byte 512: "));
}

TEST_F(ShardEngineLogTest, AfterAFailedWriteNobodyIsAnswered) {
  BeginTraining();
  disk_.Close(kLogFiles);
  Push(1, 0);
  disk_.AwaitSomebody();
  disk_.StopMachine();
  Await([this] { return !LostLog().ok(); }, "the failure");
  EXPECT_TRUE(absl::IsUnavailable(LostLog())) << "another process may go on";
  EXPECT_THAT(std::string(LostLog().message()), HasSubstr(kLogFiles));
  Push(2, 1);
  EXPECT_FALSE(calls_[1].has_answer());
  EXPECT_FALSE(calls_[2].has_answer());
  EXPECT_TRUE(engine_->Cancel(&calls_[1])) << "its answer will not come";
}

TEST_F(ShardEngineLogTest, InitialWeightsWaitForTheDirectoryOfAProcessThatEnds) {
  BeginTraining();
  const std::unique_ptr<ShardEngine> before = std::move(engine_);
  orders_.phase = Phase::kInitializing;
  StartProcess();
  const auto refused = engine_->BeginInitialize(initial_header());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace slipstream
