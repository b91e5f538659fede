#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace slipstream {
namespace {

constexpr uint64_t kSeeds = 200;

TEST(SimulationTest, KeepsItsPromisesUnderFaults) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Simulated simulated = Simulate(seed);
    EXPECT_TRUE(simulated.findings.empty()) << Report(simulated);
  }
}

class PlantedBugTest : public testing::TestWithParam<PlantedBugName> {};

TEST_P(PlantedBugTest, IsFound) {
  uint64_t seed = 1;
  while (seed <= kSeeds && Simulate(seed, GetParam().bug).findings.empty()) ++seed;

  EXPECT_LE(seed, kSeeds) << "the simulator is blind to this";
  std::printf("found by seed %llu\n", static_cast<unsigned long long>(seed));
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBugTest, testing::ValuesIn(kPlantedBugs),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace slipstream
