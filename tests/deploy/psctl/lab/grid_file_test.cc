#include "deploy/psctl/lab/grid_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <variant>

#include "tests/deploy/psctl/lab/grid_support.h"

namespace slipstream {
namespace {

TEST(GridFileTest, ReadsAllParts) {
  const Grid grid = Expand(
                        "name: table\nengine: virtual\nseeds: [3, 1]\n"
                        "budget: {cores: 2, cores_per_cell: 1, memory: 20GiB}\n"
                        "on_divergence: fail\nstop: {target_error: 0.25}\n"
                        "reference: {file: a.csv, match: {sigma: n}, error: e, tolerance: 2}\n")
                        .grid;

  EXPECT_EQ(grid.name, "table");
  EXPECT_EQ(grid.seeds, (std::vector<uint64_t>{3, 1}));
  EXPECT_EQ(grid.budget.cores, 2u);
  EXPECT_EQ(grid.budget.memory, uint64_t{20} << 30);
  EXPECT_TRUE(grid.fails_on_divergence);
  EXPECT_EQ(grid.target_error, 0.25);
  EXPECT_EQ(grid.reference->match.at("sigma"), "consistency.n");
  EXPECT_EQ(grid.reference->tolerance, 2.0);
}

TEST(GridFileTest, TheBaseLiesBesideTheGrid) {
  const std::string folder = testing::TempDir();
  std::ofstream(folder + "/base.yaml") << "model: {preset: mlp}\n";
  std::ofstream(folder + "/a-grid.yaml") << "base: base.yaml\nreference: r.csv\n";

  const auto read = LoadGrid(folder + "/a-grid.yaml");

  const auto* const grid = std::get_if<Grid>(&read);
  ASSERT_NE(grid, nullptr);
  EXPECT_EQ(grid->name, "a-grid");
  EXPECT_EQ(grid->base.entries.at(0).key, "model");
  EXPECT_EQ(grid->base.source.file.substr(grid->base.source.file.rfind('/')), "/base.yaml");
  EXPECT_EQ(grid->reference->path.substr(grid->reference->path.rfind('/')), "/r.csv");
}

TEST(GridFileTest, ASettingOfTheCommandLineTakesThePlaceOfTheFiles) {
  const auto read = ParseGrid("run: {}\nset: {epochs: 3, seed: 4}\nproduct: {workers: [1, 2]}\n",
                              "grid.yaml", {"training.epochs=5", "data.path=/data"});
  const auto* const grid = std::get_if<Grid>(&read);
  ASSERT_NE(grid, nullptr);
  ASSERT_EQ(grid->settings.size(), 3);
  EXPECT_EQ(grid->settings[0].first.path, "seed");
  EXPECT_EQ(grid->settings[1].first.path, "training.epochs");
  EXPECT_EQ(grid->settings[1].second.text, "5");
  const auto refused =
      ParseGrid("run: {}\nproduct: {workers: [1, 2]}\n", "grid.yaml", {"workers=3"});
  ASSERT_EQ(refused.index(), 1);
  EXPECT_EQ(std::get<1>(refused).front().ToString(),
            "--set workers=3: error: cluster.workers has values already");
}

TEST(GridFileTest, AShortNameIsThatOfTheKeyWithTheFewestParts) {
  EXPECT_EQ(std::get<std::string>(WholeKey("workers")), "cluster.workers");
  EXPECT_EQ(std::get<std::string>(WholeKey("learning_rate")), "optimizer.learning_rate");
  EXPECT_EQ(std::get<std::string>(WholeKey("world.network.latency")), "world.network.latency");
}

TEST(GridFileTest, NamesWhatIsWrongAndWhere) {
  EXPECT_EQ(ErrorsIn("zip: {n: [1, 2], workers: [2, 3, 4]}\n"),
            "grid.yaml:7:27: error: workers has 3 values, and consistency.n has 2: a zip takes "
            "the first of each key, then the second, and so on\n");
  EXPECT_EQ(ErrorsIn("product: {worker: [1]}\n"),
            "grid.yaml:7:11: error: there is no key \"worker\"; did you mean \"workers\"?\n");
  EXPECT_EQ(ErrorsIn("product: {n: 4}\n"),
            "grid.yaml:7:14: error: n must be a list of values in brackets, not \"4\"\n");
  EXPECT_EQ(ErrorsIn("zip: {n: [1]}\nproduct: {consistency.n: [2]}\n"),
            "grid.yaml:8:11: error: consistency.n has values already\n");
  EXPECT_EQ(ErrorsIn("produkt: {n: [1]}\n"),
            "grid.yaml:7:1: error: unknown key \"produkt\" of a grid; did you mean \"product\"?\n");
  EXPECT_EQ(ErrorsIn("base: run.yaml\n").substr(0, 15), "grid.yaml:7:7: ");
  EXPECT_EQ(
      ErrorsIn("product: {level: [info]}\n"),
      "grid.yaml:7:11: error: \"level\" may be log.level or durability.level; write the whole "
      "key\n");
  EXPECT_EQ(ErrorsIn("budget: {memory: 20GB}\n").substr(0, 21), "grid.yaml:7:18: error");
  EXPECT_EQ(ErrorsIn("seeds: [1, 1]\n"), "grid.yaml:7:12: error: the seed 1 is named twice\n");
}

}  // namespace
}  // namespace slipstream
