#include "server/core/shard/shard_state_fault.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "tests/support/shard_machine_driver.h"
#include "tests/support/spoil.h"

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

/// A shard that has made two versions and has a pull waiting for a third.
class ShardStateFaultTest : public testing::Test {
 protected:
  ShardStateFaultTest() : driver_(options_) {
    driver_.Start(FoundingView(2));
    for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
      driver_.Push(PushOf(0, sequence, sequence - 1));
      driver_.PublishAll();
    }
    driver_.Pull(TrainingPullOf(1, /*min_version=*/3));
  }

  std::string FaultAfter(const std::function<void(ShardState&)>& spoil) const {
    ShardState state = driver_.core().state();
    spoil(state);
    return FaultOf(state, options_);
  }

  const ShardMachine::Options options_ = WithSaves({Policy::kAsync});
  ShardMachineDriver driver_;
};

TEST_F(ShardStateFaultTest, AStateThatAMachineHasHasNone) {
  ASSERT_EQ(driver_.waiting().size(), 1u);
  EXPECT_EQ(FaultAfter([](ShardState&) {}), "");
}

TEST_F(ShardStateFaultTest, WhatDoesNotFitIsNamed) {
  using State = ShardState;
  EXPECT_EQ(FaultAfter([](State& state) { state.run.plan.reset(); }), "it has no weights");
  EXPECT_EQ(FaultAfter([](State& state) { state.run.plan->batches_per_epoch = 0; }),
            "an epoch has no mini-batches");
  EXPECT_EQ(FaultAfter([](State& state) { state.run.stage = 1; }), "stage 1 of 1");
  EXPECT_EQ(FaultAfter([this](State& state) {
              state.run.stages = options_.stages;
              state.run.stages[0].consistency.policy = static_cast<PolicyKind>(99);
            }),
            "a stage has policy number 99");
  EXPECT_EQ(FaultAfter([this](State& state) {
              state.run.stages = options_.stages;
              state.run.stages[0].learning_rate = std::numeric_limits<double>::infinity();
            }),
            "a stage has the learning rate inf");
  EXPECT_EQ(FaultAfter([this](State& state) {
              state.run.stages = options_.stages;
              state.run.stages[0].consistency.max_staleness.bound = 7;
            }),
            "a stage has another consistency.max_staleness than the run");
  EXPECT_EQ(FaultAfter([](State& state) { state.run.phase = static_cast<Phase>(0); }),
            "phase number 0");
  EXPECT_EQ(FaultAfter([](State& state) {
              Spoil(state.versions,
                    [](auto&, auto&, auto&, auto& published, auto&...) { published = Version{3}; });
            }),
            "version 3 is beyond 2");
  EXPECT_EQ(FaultAfter([](State& state) {
              Spoil(state.versions,
                    [](auto&, auto&, auto&, auto&, auto& versions, auto&) { versions.clear(); });
            }),
            "it describes 0 versions up to 2, and 2 is published");
  EXPECT_EQ(FaultAfter([](State& state) {
              Spoil(state.versions,
                    [](auto&, auto& generation_begin, auto&...) { generation_begin = Version{3}; });
            }),
            "its generation or its stage began after version 2");
  EXPECT_EQ(FaultAfter([](State& state) { state.intake.BeginDraft({}, {}); }),
            "an update is drafted from another version than the newest");
  EXPECT_EQ(FaultAfter([](State& state) { state.waiting.Add(state.waiting.all().front()); }),
            "two calls that wait have one name");
  EXPECT_EQ(FaultAfter([](State& state) {
              Spoil(state.waiting, [](auto& calls) { calls.front().is_pull = false; });
            }),
            "a call that waits is no push and no pull");
  EXPECT_EQ(FaultAfter([](State& state) {
              Spoil(state.waiting, [](auto& calls) {
                calls.front().parts = 1;
                calls.front().trainers.front().part = 4;
              });
            }),
            "a call that waits is for part 4 of 1");
  EXPECT_EQ(FaultAfter([](State& state) { state.members.At(WorkerId{1}).incarnation = {}; }),
            "it does not describe incarnation 2 of worker 1");
  EXPECT_EQ(FaultAfter([](State& state) { state.members.At(WorkerId{0}).bases[5] = {}; }),
            "worker 0 has more weights than it can compute from");
}

}  // namespace
}  // namespace slipstream
