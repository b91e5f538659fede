// The world of a run in virtual time: its file, its links, and how long its machines compute.

#include <gtest/gtest.h>

#include "deploy/lab/compute_times.h"
#include "deploy/lab/links.h"
#include "deploy/lab/world_spec.h"

namespace slipstream {
namespace {

TEST(World, IsReadFromItsFile) {
  const absl::StatusOr<WorldSpec> world = ReadWorld(R"(
compute: {fixed_ms: 2, per_example_ms: 0.5, spread: pareto, alpha: 2.5, slow_share: 0.25, slower: 4}
network: {latency_ms: 0.05, worker_gbits: 1, server_gbits: 10}
server: {update_ms: 0.2}
workers: [{worker: 3, slower: 2, joins_ms: 5, leaves_ms: 60, returns_ms: 90}]
)",
                                                    "world.yaml");
  ASSERT_TRUE(world.ok()) << world.status();
  EXPECT_EQ(world->compute.fixed, absl::Milliseconds(2));
  EXPECT_EQ(world->compute.spread, ComputeTimeSpec::Spread::kPareto);
  EXPECT_EQ(world->network.latency, absl::Microseconds(50));
  EXPECT_EQ(world->update, absl::Microseconds(200));
  ASSERT_NE(world->Find(WorkerId{3}), nullptr);
  EXPECT_EQ(world->Find(WorkerId{3})->returns, absl::Milliseconds(90));
  EXPECT_EQ(world->Find(WorkerId{2}), nullptr);
}

TEST(World, NamesAllThatIsWrongByLineAndColumn) {
  const absl::StatusOr<WorldSpec> world = ReadWorld(R"(compute: {fixed: 2, sigma: 9}
links: {}
workers: [{worker: 1, leaves_ms: 0}, {slower: 2}]
)",
                                                    "world.yaml");
  ASSERT_TRUE(absl::IsInvalidArgument(world.status()));
  const std::string text(world.status().message());
  for (const char* part :
       {"world.yaml:1:11: error: unknown key \"fixed\" of compute", "world.yaml:1:28: error: sigma",
        "world.yaml:2:1: error: unknown key \"links\"", "a worker must leave after it joins",
        "needs \"worker\""}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }
}

TEST(Links, QueueAtTheServer) {
  // 1 Gbit/s takes 8 ns for a byte.
  Links links({.latency = absl::Microseconds(10), .worker_gbits = 1, .server_gbits = 1}, 2, 1);
  const absl::Time begin = absl::UnixEpoch();
  EXPECT_EQ(links.ToServer(WorkerId{0}, ShardId{0}, 1000, begin) - begin, absl::Microseconds(18));
  // The second worker's message waits for the first one at the server's link.
  EXPECT_EQ(links.ToServer(WorkerId{1}, ShardId{0}, 1000, begin) - begin, absl::Microseconds(26));
  // The other direction is free.
  EXPECT_EQ(links.ToWorker(ShardId{0}, WorkerId{0}, 1000, begin) - begin, absl::Microseconds(18));
}

TEST(Links, AreAsFastAsTheSlowerEnd) {
  Links links({.worker_gbits = 0.1, .server_gbits = 10}, 1, 1);
  EXPECT_EQ(links.ToServer(WorkerId{0}, ShardId{0}, 1000, absl::UnixEpoch()) - absl::UnixEpoch(),
            absl::Microseconds(80));
  Links free({}, 1, 1);
  EXPECT_EQ(free.ToServer(WorkerId{0}, ShardId{0}, 1000, absl::UnixEpoch()), absl::UnixEpoch());
}

TEST(ComputeTimes, HaveTheMeanThatTheirMachineHas) {
  for (const auto spread : {ComputeTimeSpec::Spread::kNone, ComputeTimeSpec::Spread::kLogNormal,
                            ComputeTimeSpec::Spread::kPareto}) {
    WorldSpec world;
    world.compute.fixed = absl::Milliseconds(2);
    world.compute.spread = spread;
    world.compute.slow_share = 0.5;
    world.compute.slower = 3;
    ComputeTimes times(world, 2, 1);
    for (uint32_t worker = 0; worker < 2; ++worker) {
      absl::Duration sum;
      for (int i = 0; i < 20'000; ++i) sum += times.Next(WorkerId{worker}, 8);
      EXPECT_NEAR(absl::ToDoubleMilliseconds(sum) / 20'000, worker == 0 ? 10 : 30,
                  worker == 0 ? 0.3 : 1);
    }
  }
}

}  // namespace
}  // namespace slipstream
