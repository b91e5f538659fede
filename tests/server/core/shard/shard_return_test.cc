#include "server/core/shard/shard_return.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/shard_machine_driver.h"
#include "tests/support/specs.h"
#include "tests/support/spoil.h"

// Tests of a shard that goes on from a state that was saved.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

/// Returns the push as it is in a later generation.
ShardMachine::PushFacts InGeneration(uint64_t generation, ShardMachine::PushFacts push) {
  push.header.generation = Generation{generation};
  return push;
}

PullRequest InGeneration(uint64_t generation, PullRequest pull) {
  pull.min_generation = Generation{generation};
  return pull;
}

class ShardReturnTest : public testing::Test {
 protected:
  void Start(const ShardMachine::Options& options, uint32_t workers = 2) {
    driver_.emplace(options);
    driver_->Start(FoundingView(workers));
  }

  /// Under async: versions 1 to 3, of which 2 is saved.
  void StartAsync() {
    Start(WithSaves({Policy::kAsync}));
    driver_->Push(PushOf(0, 1, 0), 1);
    driver_->PublishAll();
    driver_->Push(PushOf(0, 2, 1), 10);
    driver_->PublishAll();
    driver_->OnSaveOrder(OrderOf(1));
    driver_->Push(PushOf(0, 3, 2), 100);
    driver_->PublishAll();
    ASSERT_EQ(driver_->saved().back().versions.decided(), Version{2});
  }

  const ShardMachine& core() const { return driver_->core(); }

  std::optional<ShardMachineDriver> driver_;
};

TEST_F(ShardReturnTest, APushOfTheGenerationBeforeThatIsLostIsRefused) {
  StartAsync();
  driver_->Return(Generation{1});
  const std::string before = Describe(core());

  const PushReply repeated = driver_->Push(PushOf(0, 3, 2), 100).reply;
  EXPECT_EQ(repeated.outcome, PushOutcome::kTooStale);
  EXPECT_EQ(repeated.generation, Generation{1});
  EXPECT_EQ(driver_->Push(PushOf(0, 4, 2), 10).reply.outcome, PushOutcome::kTooStale);
  EXPECT_EQ(Describe(core()), before);
}

/// The server died before the answer reached the worker.
TEST_F(ShardReturnTest, APushOfTheGenerationBeforeThatIsPartOfTheWeightsGetsItsAnswerAgain) {
  StartAsync();
  driver_->Return(Generation{1});
  const uint64_t examples = core().examples_applied();

  const PushReply repeated = driver_->Push(PushOf(0, 2, 1), 10).reply;
  EXPECT_EQ(repeated.outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(repeated.first_outcome, PushOutcome::kApplied);
  EXPECT_EQ(repeated.version, Version{2});
  EXPECT_EQ(repeated.generation, Generation{});
  EXPECT_EQ(core().decided(), Version{2});
  EXPECT_EQ(core().examples_applied(), examples);

  // It is known in later generations, too, until the member pushes in one of them.
  driver_->OnSaveOrder(OrderOf(2));
  driver_->Return(Generation{2});
  EXPECT_EQ(driver_->Push(PushOf(0, 2, 1), 10).reply.outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(driver_->Push(InGeneration(2, PushOf(0, 1, 2)), 1).reply.outcome,
            PushOutcome::kApplied);
}

TEST_F(ShardReturnTest, APullOfTheGenerationBeforeIsAnsweredAtOnceAndMayBeTrainedOn) {
  Start(WithSaves({Policy::kHardsync}));
  driver_->Return(Generation{1});

  const PullDecision decision =
      driver_->Pull(TrainingPullOf(0, /*min_version=*/9, /*sequence=*/10));

  EXPECT_EQ(std::get<Serve>(decision).version, Version{0});
  EXPECT_EQ(std::get<Serve>(decision).work->kind, RoundWork::Kind::kCompute);
  EXPECT_EQ(core().round().excused(), 0u);
}

/// The shard makes versions again that have the numbers of versions which the reader may hold.
TEST_F(ShardReturnTest, ValuesOfTheGenerationBeforeAreNotBuiltUpon) {
  ShardMachine::Options options = WithSaves({Policy::kAsync});
  options.versions_kept = 2;
  Start(options);
  driver_->Return(Generation{1});
  driver_->Push(InGeneration(1, PushOf(0, 1, 0)), 1);
  driver_->PublishAll();
  PullRequest reader = {.shard_map = TestPlan().shard_map, .held = Version{1}};

  const ShardOutput of_old = driver_->core().OnPull(CallId{1001}, reader);
  const ShardOutput of_new = driver_->core().OnPull(CallId{1002}, InGeneration(1, reader));

  EXPECT_EQ(of_old.answers.front().weights->base, std::nullopt);
  EXPECT_EQ(of_new.answers.front().weights->base, Version{1});
}

TEST_F(ShardReturnTest, InStepAPullOfAGenerationToComeTriesAgain) {
  Start(WithSaves({Policy::kHardsync}));

  const PullDecision early = driver_->Pull(InGeneration(1, TrainingPullOf(0)));
  driver_->Return(Generation{1});
  const PullDecision late = driver_->Pull(InGeneration(1, TrainingPullOf(0)));

  EXPECT_EQ(std::get<PullRefusal>(early), PullRefusal::kLaterGeneration);
  EXPECT_TRUE(std::holds_alternative<Serve>(late));
}

/// Its worker has missed the end of a stage in which the generation of one shard was that of all.
TEST_F(ShardReturnTest, OutOfStepAPullOfAGenerationThatIsNotToComeIsAnswered) {
  StartAsync();

  const PullDecision decision =
      driver_->Pull(InGeneration(1, TrainingPullOf(0, /*min_version=*/9)));

  EXPECT_EQ(std::get<Serve>(decision).version, Version{3});
}

TEST_F(ShardReturnTest, TheStateOfALaterMomentLosesItsCallsToo) {
  Start(WithSaves({Policy::kAsync}));
  driver_->Pull(TrainingPullOf(0, /*min_version=*/5));
  driver_->core().OnPull(CallId{1001}, TrainingPullOf(1));
  driver_->core().OnPull(CallId{1002}, {.shard_map = TestPlan().shard_map});
  driver_->core().OnPushHeader(PushOf(1, 1, 0).header);
  ASSERT_EQ(core().pulls_under_way(), 2u);
  ASSERT_TRUE(core().state().intake.draft().has_value());

  driver_->core().Restore(Returned(core().state(), Generation{1}));

  core().CheckInvariants();
  EXPECT_EQ(core().waiting(), 0u);
  EXPECT_EQ(core().pulls_under_way(), 0u);
  EXPECT_EQ(core().bytes_queued(), 0u);
  EXPECT_EQ(core().members().At(WorkerId{1}).pushes_arriving, 0u);
  EXPECT_FALSE(core().state().intake.draft().has_value());
}

TEST_F(ShardReturnTest, MiniBatchesOfTheOpenRoundAreNamedAgainToTheSameMembers) {
  Start(WithSaves({Policy::kHardsync}));
  driver_->OnSaveOrder(OrderOf(1, 1));
  for (uint32_t worker = 0; worker < 2; ++worker) driver_->Pull(TrainingPullOf(worker));
  for (uint32_t worker = 0; worker < 2; ++worker) driver_->Push(PushOf(worker, 1, 0), 1);
  driver_->PublishAll();
  for (uint32_t worker = 0; worker < 2; ++worker) driver_->Pull(TrainingPullOf(worker, 0, 2));
  driver_->Push(PushOf(0, 2, 1), 50);

  driver_->Return(Generation{1});

  EXPECT_EQ(driver_->LackedMembers().size(), 2u);
  for (uint32_t worker : {1u, 0u}) {
    const PullDecision pulled = driver_->Pull(InGeneration(1, TrainingPullOf(worker)));
    EXPECT_EQ(std::get<Serve>(pulled).work->batches.first, 2 + worker);
  }
  driver_->Push(InGeneration(1, PushOf(1, 1, 1)), 5);
  driver_->Push(InGeneration(1, PushOf(0, 1, 1)), 5);
  EXPECT_EQ(driver_->weights(), (std::vector<double>{0, -1, -6}));
}

TEST_F(ShardReturnTest, ADrainedShardOwesWorkAgainIfItReturnsToAnEarlierVersion) {
  Start(WithSaves({Policy::kHardsync}), 1);
  driver_->Push(PushOf(0, 1, 0), 1);
  driver_->OnPhase(Phase::kDraining, 1);
  driver_->PublishAll();
  ASSERT_TRUE(core().is_drained());

  driver_->core().Restore(Returned(driver_->saved().front(), Generation{1}));
  EXPECT_FALSE(core().is_drained());
  driver_->core().Restore(Returned(driver_->saved().back(), Generation{1}));
  EXPECT_EQ(core().phase(), Phase::kTraining);
  driver_->OnPhase(Phase::kEvaluating, 1);
  EXPECT_TRUE(core().is_drained());
}

TEST_F(ShardReturnTest, AGradientOfAnEarlierStageIsLateAfterAReturnToo) {
  ShardMachine::Options options = WithSaves({Policy::kHardsync});
  options.stages.push_back({.consistency = {Policy::kAsync}});
  Start(options, 1);
  driver_->Push(PushOf(0, 1, 0), 1);
  driver_->OnPhase(Phase::kDraining, 1);
  driver_->PublishAll();
  driver_->OnStage(1);
  driver_->Push(PushOf(0, 2, 1), 1);
  driver_->OnSaveOrder(OrderOf(1));
  driver_->PublishAll();

  const absl::StatusOr<ShardState> saved =
      DecodeShardState(EncodeShardState(driver_->saved().back()));
  ASSERT_TRUE(saved.ok()) << saved.status();
  driver_->core().Restore(Returned(*saved, Generation{1}));

  EXPECT_EQ(driver_->Push(InGeneration(1, PushOf(0, 1, 0))).reply.outcome,
            PushOutcome::kDroppedLate);
  EXPECT_EQ(driver_->Push(InGeneration(1, PushOf(0, 2, 1))).reply.outcome, PushOutcome::kApplied);
  EXPECT_EQ(core().stage(), 1u);
}

/// A worker that has no work says so once. If that was after the state was saved, the shard never
/// hears it again, and nobody must wait for it.
TEST_F(ShardReturnTest, NobodyIsAwaitedWhoHasNotBeenHeardOfInThisGeneration) {
  ConsistencySpec ssp = {.policy = Policy::kSsp};
  ssp.parameters["slack"] = 0;
  Start(WithSaves(ssp));
  driver_->Pull(TrainingPullOf(0));
  driver_->Pull(TrainingPullOf(1));
  driver_->OnSaveOrder(OrderOf(1));
  ShardMachine::PushFacts first = PushOf(0, 1, 0);
  first.header.clock = WorkerClock{1};
  driver_->Push(first, 1);
  ShardMachine::PushFacts last = PushOf(1, 1, 0);
  last.header.clock = WorkerClock{1};
  last.header.rests = true;
  driver_->Push(last, 1);
  ASSERT_EQ(driver_->saved().back().versions.decided(), Version{1});
  driver_->PublishAll();

  driver_->Return(Generation{1});

  PullRequest ahead = InGeneration(1, TrainingPullOf(0));
  ahead.clock = WorkerClock{2};
  EXPECT_TRUE(std::holds_alternative<Serve>(driver_->Pull(ahead)));
  // If the other has work after all, it goes on at the clock of the slowest.
  EXPECT_TRUE(std::holds_alternative<Serve>(driver_->Pull(InGeneration(1, TrainingPullOf(1)))));
  EXPECT_EQ(core().members().At(WorkerId{1}).clock, WorkerClock{2});
}

/// The worker of a late repetition has gone on, and may wait at another shard for those that would
/// wait for it here.
TEST_F(ShardReturnTest, NobodyIsAwaitedForAPullOfTheGenerationBefore) {
  ConsistencySpec ssp = {.policy = Policy::kSsp};
  ssp.parameters["slack"] = 0;
  Start(WithSaves(ssp));
  driver_->Return(Generation{1});

  EXPECT_TRUE(std::holds_alternative<Serve>(driver_->Pull(TrainingPullOf(1))));

  PullRequest ahead = InGeneration(1, TrainingPullOf(0));
  ahead.clock = WorkerClock{2};
  EXPECT_TRUE(std::holds_alternative<Serve>(driver_->Pull(ahead)));
}

TEST_F(ShardReturnTest, AnOrderFromBeforeTheReturnIsObeyedAfterIt) {
  StartAsync();
  driver_->Return(Generation{1});

  driver_->OnSaveOrder(OrderOf(2));

  EXPECT_EQ(driver_->saved().back().versions.generation(), Generation{1});
  EXPECT_EQ(driver_->saved().back().versions.decided(), Version{2});
}

TEST_F(ShardReturnTest, AShardMayReturnFromAStateThatItSavedInALaterGeneration) {
  StartAsync();
  driver_->Return(Generation{1});
  driver_->Push(InGeneration(1, PushOf(0, 1, 2)), 1);
  driver_->PublishAll();
  driver_->OnSaveOrder(OrderOf(2));

  driver_->Return(Generation{4});

  EXPECT_EQ(core().generation_begin(), Version{3});
  EXPECT_EQ(driver_->Push(InGeneration(1, PushOf(0, 2, 3)), 1).reply.outcome,
            PushOutcome::kTooStale);
  EXPECT_EQ(driver_->Push(InGeneration(4, PushOf(0, 1, 3)), 1).reply.outcome,
            PushOutcome::kApplied);
}

TEST_F(ShardReturnTest, InTheSameGenerationASaveThatDidNotComeToTheDiskIsDueAgain) {
  StartAsync();
  ASSERT_EQ(core().state().saves.last_saved(), Version{2});
  const EndedProcess end = {.oldest_kept = Version{3}, .saved = Version{0}};

  ShardMachine next(WithSaves({Policy::kAsync}));
  next.Restore(core().state());
  EXPECT_TRUE(next.OnProcessEnd(end).saves);

  EXPECT_EQ(next.state().saves.last_saved(), Version{3});
}

// The state as bytes.

TEST_F(ShardReturnTest, BytesThatEndTooEarlyOrTooLateAreNoState) {
  StartAsync();
  const std::string bytes = EncodeShardState(driver_->saved().back());
  ASSERT_TRUE(DecodeShardState(bytes).ok());

  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto state = DecodeShardState(std::string_view(bytes).substr(0, size));
    ASSERT_EQ(state.status().code(), absl::StatusCode::kDataLoss) << size << " bytes";
  }
  EXPECT_EQ(DecodeShardState(bytes + '\0').status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ShardReturnTest, AStateWithoutItsVersionsIsRefused) {
  StartAsync();
  ShardState state = driver_->saved().back();
  Spoil(state.versions,
        [](auto&, auto&, auto&, auto&, auto& versions, auto&) { versions.clear(); });
  EXPECT_EQ(DecodeShardState(EncodeShardState(state)).status().code(), absl::StatusCode::kDataLoss);

  state = driver_->saved().back();
  Spoil(state.versions,
        [](auto&, auto&, auto& decided, auto& published, auto&...) { published = Next(decided); });
  EXPECT_EQ(DecodeShardState(EncodeShardState(state)).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ShardReturnTest, TheStagesThatAChangeAddedAreInTheBytes) {
  Start(WithSaves({Policy::kAsync}));
  std::vector<RunStage> stages = TestOptions({Policy::kAsync}).stages;
  stages.push_back({.consistency = Softsync(2), .learning_rate = 0.25, .begins_at_once = true});
  driver_->OnStages(stages);
  driver_->OnStage(1);

  const absl::StatusOr<ShardState> state = DecodeShardState(EncodeShardState(core().state()));

  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->run.stages, core().state().run.stages);
  EXPECT_EQ(state->run.stage, 1u);
}

}  // namespace
}  // namespace slipstream
