#include "deploy/psctl/lab/lab_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deploy/psctl/lab/cost_model.h"
#include "tests/deploy/psctl/lab/grid_support.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::vector<int>> Groups(const std::string& more) {
  return CoreGroups(Expand(more).grid, {4, 5, 6, 7}).value();
}

TEST(LabRunTest, NoCoreIsInTwoGroups) {
  EXPECT_THAT(Groups("engine: virtual\n"),
              ElementsAre(std::vector{4}, std::vector{5}, std::vector{6}, std::vector{7}));
  EXPECT_THAT(Groups("budget: {cores: 2}\n"), ElementsAre(std::vector{4}, std::vector{5}));
  EXPECT_THAT(Groups("budget: {cores: 3, cores_per_cell: 2}\n"), ElementsAre(std::vector{4, 5}));
  EXPECT_THAT(Groups("engine: processes\nbudget: {cores: 2}\n"), ElementsAre(std::vector{4, 5}));
}

TEST(LabRunTest, RefusesMoreCoresThanThereAre) {
  const auto why = [](const std::string& more) {
    return std::string(CoreGroups(Expand(more).grid, {0, 1}).status().message());
  };

  EXPECT_THAT(why("budget: {cores: 3}\n"),
              HasSubstr("budget.cores is 3, and this process may use 2"));
  EXPECT_THAT(why("budget: {cores: 1, cores_per_cell: 2}\n"),
              HasSubstr("budget.cores_per_cell is 2, which is more than the 1 core in all"));
}

TEST(CostModelTest, CountsTheMultiplicationsOfANet) {
  // Three dense layers.
  const RunSpec spec = Expand("").cells.cells[0].settings;

  EXPECT_EQ(MultiplicationsPerExample(spec.model), 784.0 * 256 + 256 * 128 + 128 * 10);
}

TEST(CostModelTest, CountsMappedDataOnce) {
  RunSpec spec = Expand("").cells.cells[0].settings;
  spec.data.format = DataSpec::Format::kCifar10;
  spec.cluster.workers = 3;
  const uint64_t data = 6u * 30'730'000;

  EXPECT_EQ(CellBytes(spec, GridEngine::kProcesses, data + 100),
            data + 100 * (3 + spec.cluster.servers.size()));
  EXPECT_EQ(CellBytes(spec, GridEngine::kProcesses, 100), 100u) << "of data that are not read";
  EXPECT_EQ(CellBytes(spec, GridEngine::kVirtual, data + 100), data + 100);
}

TEST(CostModelTest, LearnsFromCellsThatAreDone) {
  const Expanded grid = Expand("product: {batch_size: [4, 8], epochs: [1, 3]}\n");
  const std::vector<Cell>& cells = grid.cells.cells;
  CostModel costs(GridEngine::kVirtual);
  EXPECT_FALSE(costs.Estimate(cells[0], 1).is_learned);
  EXPECT_NEAR(costs.CoreSeconds(cells[1]), 3 * costs.CoreSeconds(cells[0]), 1e-9);

  costs.Learn(cells[0], {.wall_seconds = 12, .cpu_seconds = 10, .peak_bytes = 1000});

  EXPECT_TRUE(costs.Estimate(cells[1], 1).is_learned);
  EXPECT_NEAR(costs.CoreSeconds(cells[1]), 30, 1e-9);
  EXPECT_NEAR(costs.CoreSeconds(cells[2]), 10, 1e-9) << "of the other mini-batch";
  EXPECT_NEAR(costs.WallSeconds(cells[1], 1), 36, 1e-9);
  EXPECT_EQ(costs.Estimate(cells[3], 1).bytes, 1000u);

  costs.Learn(cells[2], {.wall_seconds = 12, .cpu_seconds = 5, .peak_bytes = 2000});

  EXPECT_NEAR(costs.CoreSeconds(cells[3]), 15, 1e-9);
  EXPECT_NEAR(costs.CoreSeconds(cells[1]), 30, 1e-9);
}

}  // namespace
}  // namespace slipstream
