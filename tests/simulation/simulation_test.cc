#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace slipstream {
namespace {

constexpr uint64_t kSeeds = 200;

TEST(SimulationTest, KeepsItsPromisesUnderFaults) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Simulated simulated = Simulate(seed);
    EXPECT_TRUE(simulated.findings.empty()) << Report(simulated);
  }
}

}  // namespace
}  // namespace slipstream
