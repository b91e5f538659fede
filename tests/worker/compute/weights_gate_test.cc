#include "worker/compute/weights_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "common/base/philox.h"

namespace slipstream {
namespace {

/// Returns whether a step would find the range. REQUIRES: the gate is abandoned or open, so nothing
/// waits.
bool IsThere(WeightsGate& gate, ParameterRange range) {
  gate.Enter();
  const bool is_there = gate.Await(range);
  gate.Leave();
  return is_there;
}

TEST(WeightsGateTest, IsOpenUntilWeightsAreExpected) {
  WeightsGate gate(100);
  EXPECT_TRUE(IsThere(gate, {0, 100}));

  gate.Expect();
  gate.Abandon();

  EXPECT_FALSE(IsThere(gate, {0, 1}));
}

TEST(WeightsGateTest, LetsAStepReadWhatHasArrived) {
  WeightsGate gate(100);
  gate.Expect();
  gate.Arrived({0, 30});
  gate.Arrived({50, 80});
  gate.Abandon();

  EXPECT_TRUE(IsThere(gate, {0, 30}));
  EXPECT_TRUE(IsThere(gate, {55, 80}));
  EXPECT_TRUE(IsThere(gate, {40, 40})) << "a layer without parameters";
  EXPECT_FALSE(IsThere(gate, {29, 31}));
  EXPECT_FALSE(IsThere(gate, {40, 60}));
  gate.Arrived({30, 50});
  EXPECT_TRUE(IsThere(gate, {0, 80}));
}

TEST(WeightsGateTest, TellsWithoutWaitingWhatIsThere) {
  WeightsGate gate(100);
  gate.Expect();
  gate.Arrived({0, 50});
  gate.Enter();

  EXPECT_TRUE(gate.Has({10, 50}));
  EXPECT_FALSE(gate.Has({49, 51}));
  gate.Arrived({50, 100});
  EXPECT_TRUE(gate.Has({0, 100}));
  EXPECT_TRUE(gate.Leave());
}

TEST(WeightsGateTest, AStepWaitsUntilItsRangeArrives) {
  WeightsGate gate(100);
  gate.Expect();
  std::atomic<bool> is_given = false;
  std::thread step([&] {
    gate.Enter();
    EXPECT_TRUE(gate.Await({10, 20}));
    EXPECT_TRUE(is_given);
    EXPECT_GE(gate.waited(), absl::ZeroDuration());
    EXPECT_TRUE(gate.Leave());
  });

  is_given = true;
  gate.Arrived({0, 50});
  step.join();
}

TEST(WeightsGateTest, ARevocationEndsTheStepBeforeItReturns) {
  WeightsGate gate(100);
  gate.Expect();
  gate.Arrived({0, 50});
  std::atomic<bool> has_entered = false;
  std::atomic<bool> is_reading = true;
  std::thread step([&] {
    gate.Enter();
    has_entered = true;
    EXPECT_FALSE(gate.Await({40, 60}));
    is_reading = false;
    EXPECT_FALSE(gate.Leave());
  });
  while (!has_entered) std::this_thread::yield();

  gate.Revoke({0, 100});

  EXPECT_FALSE(is_reading);
  step.join();
  gate.Arrived({0, 100});
  EXPECT_TRUE(IsThere(gate, {0, 100})) << "the step starts over";
}

TEST(WeightsGateTest, ARevocationWaitsForNoStepThatBeginsAfterIt) {
  WeightsGate gate(100);
  gate.Expect();
  std::atomic<bool> has_entered = false;
  std::thread steps([&] {
    gate.Enter();
    has_entered = true;
    EXPECT_FALSE(gate.Await({0, 100}));
    EXPECT_FALSE(gate.Leave());
    gate.Enter();  // Perhaps before the revocation notices the end.
    EXPECT_TRUE(gate.Await({0, 100}));
    EXPECT_TRUE(gate.Leave());
  });
  while (!has_entered) std::this_thread::yield();

  gate.Revoke({0, 100});

  gate.Arrived({0, 100});
  steps.join();
}

TEST(WeightsGateTest, ARevocationBetweenStepsEndsTheNextOne) {
  WeightsGate gate(100);
  gate.Expect();
  gate.Revoke({0, 100});
  gate.Arrived({0, 100});

  EXPECT_FALSE(IsThere(gate, {0, 100}));
  EXPECT_TRUE(IsThere(gate, {0, 100}));
}

TEST(WeightsGateTest, AgreesWithASetOfPositions) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomStream random(seed, 0);
    WeightsGate gate(40);
    gate.Expect();
    gate.Abandon();
    std::set<size_t> there;
    for (int i = 0; i < 20; ++i) {
      const size_t begin = random.Below(40);
      const size_t end = begin + 1 + random.Below(static_cast<uint32_t>(40 - begin));
      if (random.Below(3) == 0) {
        gate.Revoke({begin, end});
        IsThere(gate, {0, 0});  // Ends the step that the revocation waits for.
        for (size_t at = begin; at < end; ++at) there.erase(at);
      } else {
        gate.Arrived({begin, end});
        for (size_t at = begin; at < end; ++at) there.insert(at);
      }
      for (size_t at = 0; at < 40; ++at) {
        ASSERT_EQ(IsThere(gate, {at, at + 1}), there.count(at) > 0) << at;
      }
    }
  }
}

}  // namespace
}  // namespace slipstream
