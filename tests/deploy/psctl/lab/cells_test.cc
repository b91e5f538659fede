#include "deploy/psctl/lab/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/deploy/psctl/lab/grid_support.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CellsTest, ZipsKeysAndCombinesAxes) {
  const Expanded grid = Expand(
      "zip: {n: [1, 10], batch_size: [4, 16]}\n"
      "product: {workers: [10, 30]}\n");

  EXPECT_THAT(grid.Labels(),
              ElementsAre("n=1, batch_size=4, workers=10", "n=1, batch_size=4, workers=30",
                          "n=10, batch_size=16, workers=10", "n=10, batch_size=16, workers=30"));
  EXPECT_EQ(grid.cells.cells[2].settings.training.batch_size, 16u);
  EXPECT_EQ(grid.cells.cells[2].settings.cluster.workers, 10u);
}

TEST(CellsTest, SeveralZipsAreCombined) {
  const Expanded grid = Expand(
      "zip:\n"
      "  - {workers: [2, 4], batch_size: [64, 32]}\n"
      "  - {learning_rate: [0.1, 0.2], momentum: [0.5, 0.9]}\n"
      "set: {optimizer.kind: momentum}\n");

  EXPECT_EQ(grid.cells.cells.size(), 4u);
}

TEST(CellsTest, EvaluatesExpressionsInWhateverOrderTheyNeed) {
  const Expanded grid = Expand(
      "product: {n: [1, \"=workers\"], batch_size: [\"=64/workers\"], workers: [2, 8]}\n"
      "set: {learning_rate: \"=0.1/n\"}\n");

  EXPECT_THAT(grid.Labels(),
              ElementsAre("n=1, batch_size=32, workers=2", "n=1, batch_size=8, workers=8",
                          "n=2, batch_size=32, workers=2", "n=8, batch_size=8, workers=8"));
  EXPECT_DOUBLE_EQ(grid.cells.cells[3].settings.optimizer.learning_rate, 0.0125);
  EXPECT_EQ(grid.cells.cells[3].values[0].written, "=workers");
}

TEST(CellsTest, TakesTheBasesValuesForKeysThatTheGridLeavesAlone) {
  const Expanded grid = Expand("product: {n: [\"=workers/3\"]}\nwhere: workers == 30\n");

  EXPECT_THAT(grid.Labels(), ElementsAre("n=10"));
}

TEST(CellsTest, LeavesOutCells) {
  const Expanded grid = Expand(
      "product: {n: [1, 4], workers: [2, 4]}\n"
      "where: [\"n <= workers\", \"not (n == 1 and workers == 4)\"]\n");

  EXPECT_THAT(grid.Labels(), ElementsAre("n=1, workers=2", "n=4, workers=4"));
  EXPECT_EQ(grid.cells.left_out, 2u);
}

TEST(CellsTest, AValueOfNothingLeavesTheKeyAlone) {
  const Expanded grid = Expand("zip: {policy: [hardsync, softsync], n: [~, 30]}\n");

  EXPECT_THAT(grid.Labels(), ElementsAre("policy=hardsync", "policy=softsync, n=30"));
}

TEST(CellsTest, CellsThatMeanTheSameAreOne) {
  const Expanded grid = Expand("product: {n: [18, 30, 7, 6]}\n");

  EXPECT_THAT(grid.Labels(), ElementsAre("n=18", "n=7", "n=6"));
  EXPECT_EQ(grid.cells.merged, 1u);
  ASSERT_EQ(grid.cells.cells[0].same.size(), 1u);
  EXPECT_EQ(CellLabel(grid.cells.axes, grid.cells.cells[0].same[0]), "n=30");
}

TEST(CellsTest, WhereWorkersAreLostRoundsMayComeToDiffer) {
  const Expanded grid =
      Expand("product: {n: [9, 10, 18, 30]}\nworld: {workers: [{worker: 3, leaves_ms: 2000}]}\n");

  // ⌊30/9⌋ = ⌊30/10⌋, but ⌊29/9⌋ > ⌊29/10⌋.
  EXPECT_THAT(grid.Labels(), ElementsAre("n=9", "n=10", "n=18"));
}

TEST(CellsTest, RepeatsEachPointForEachSeed) {
  const Expanded grid = Expand("product: {n: [1, 30]}\nseeds: [7, 8, 9]\n");

  ASSERT_EQ(grid.cells.cells.size(), 6u);
  EXPECT_EQ(grid.cells.cells[4].seed(), 8u);
  EXPECT_EQ(grid.cells.cells[4].point, 1u);
  EXPECT_EQ(grid.cells.cells[4].repetition, 1u);
  EXPECT_EQ(Expand("seeds: 3\n").cells.cells[2].seed(), 3u);
}

TEST(CellsTest, SchedulesShrinkWithTheEpochs) {
  const Expanded grid = Expand("scale: {epochs: 140, run: 10}\n");

  const RunSpec& spec = grid.cells.cells[0].settings;
  EXPECT_EQ(spec.training.epochs, 10u);
  EXPECT_THAT(spec.optimizer.schedule.at_epochs,
              ElementsAre(testing::DoubleEq(120.0 / 14), testing::DoubleEq(130.0 / 14)));
}

TEST(CellsTest, ATargetErrorIsATargetAccuracy) {
  const Expanded grid = Expand("stop: {target_error: 0.2}\n");

  EXPECT_DOUBLE_EQ(grid.cells.cells[0].settings.training.target_accuracy, 0.8);
}

TEST(CellsTest, TheWorldIsPassedOnAsItIsWritten) {
  const Expanded grid = Expand(
      "world: {compute: {fixed_ms: 2, spread: \"pareto\"}, workers: [{worker: 1}]}\n"
      "product: {world.compute.fixed_ms: [1, 3], world.network.latency_ms: "
      "[\"=world.server.update_ms\"]}\n"
      "set: {world.server.update_ms: 0.5}\n");

  ASSERT_EQ(grid.cells.cells.size(), 2u);
  EXPECT_EQ(grid.cells.cells[1].world,
            "compute: {fixed_ms: 3, spread: \"pareto\"}\nworkers: [{worker: 1}]\n"
            "server: {update_ms: 0.5}\nnetwork: {latency_ms: 0.5}\n");
  EXPECT_NE(grid.cells.cells[0].id, grid.cells.cells[1].id);
}

TEST(CellsTest, AWorldThatIsNoneIsRefused) {
  EXPECT_THAT(ErrorsIn("world: {compute: {per_exampel_ms: 2}}\n"),
              testing::HasSubstr("did you mean \"per_example_ms\"?"));
}

TEST(CellsTest, TheIdFollowsWhatDecidesTheResult) {
  const auto id = [](const std::string& more) { return Expand(more).cells.cells.at(0).id; };

  EXPECT_EQ(id("name: a\n"), id("name: b\nseeds: [1]\nbudget: {cores: 1}\n"));
  EXPECT_EQ(id("set: {training.batch_size: 32}\n"), id("product: {batch_size: [32]}\n"));
  const std::set<std::string> ids = {id(""),
                                     id("engine: processes\n"),
                                     id("world: {server: {update_ms: 1}}\n"),
                                     id("seeds: [2]\n"),
                                     id("set: {batch_size: 33}\n"),
                                     id("scale: {epochs: 140, run: 10}\n")};
  EXPECT_EQ(ids.size(), 6u);
}

TEST(CellsTest, ReportsErrorsWhereTheGridHasThem) {
  // kRun has six lines.
  EXPECT_EQ(ErrorsIn("product: {n: [1, 31]}\n"),
            "grid.yaml:7:18: error: n must be at most the number of workers, 30, not 31\n");
  EXPECT_EQ(ErrorsIn("product: {workers: [2, \"=lambda\"]}\n"),
            "grid.yaml:7:26: error: there is no key \"lambda\"\n");
  EXPECT_EQ(ErrorsIn("product: {workers: [\"=n\"], n: [\"=workers\"]}\n").substr(0, 21),
            "grid.yaml:7:21: error");
  EXPECT_EQ(ErrorsIn("where: n + 1\n"),
            "grid.yaml:7:8: error: where must be a condition, such as n <= workers\n");
  EXPECT_EQ(ErrorsIn("where: n > workers\n"), "grid.yaml:7:8: error: no cell is left\n");
  EXPECT_EQ(ErrorsIn("product: {seed: [1]}\nseeds: 2\n"),
            "grid.yaml:7:11: error: the seed has values by \"seeds\" already\n");
  EXPECT_EQ(ErrorsIn("scale: {epochs: 100, run: 10}\n"),
            "grid.yaml:7:8: error: scale.epochs is 100 and training.epochs 140: both say for how "
            "many epochs the schedules are made\n");
  EXPECT_EQ(ErrorsIn("engine: processes\nworld: {a: 1}\n"),
            "grid.yaml:8:8: error: only engine: virtual has a world\n");
  EXPECT_THAT(ErrorsIn("product: {batch_size: [\"=workers/4\"]}\n"),
              HasSubstr("grid.yaml:7:24: error: training.batch_size must be a whole number"));
}

}  // namespace
}  // namespace slipstream
