#include "deploy/psctl/run/process_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace slipstream {
namespace {

using testing::ElementsAre;

std::vector<uint32_t> Shares(uint32_t nodes, uint32_t workers, std::vector<uint32_t> per_node) {
  return WorkersByNode(nodes, workers, per_node).value_or(std::vector<uint32_t>());
}

/// Returns the processes of each node, a line for each.
std::string Plan(const ClusterSpec& cluster, const std::vector<uint32_t>& workers) {
  std::string text;
  for (uint32_t rank = 0; rank < workers.size(); ++rank) {
    for (const ProcessName& process : ProcessesOf(rank, cluster, workers)) {
      text += process.Slug() + " ";
    }
    text += "\n";
  }
  return text;
}

TEST(NodePlanTest, SharesAreEqualOrAsSaid) {
  EXPECT_THAT(Shares(3, 6, {}), ElementsAre(2, 2, 2));
  EXPECT_THAT(Shares(3, 5, {}), ElementsAre(2, 2, 1));
  EXPECT_THAT(Shares(3, 1, {}), ElementsAre(1, 0, 0));
  EXPECT_THAT(Shares(3, 1, {2, 4, 1}), ElementsAre(2, 4, 1));
  EXPECT_THAT(Shares(3, 1, {0, 4, 4}), ElementsAre(0, 4, 4));
  EXPECT_THAT(Shares(3, 1, {2}), ElementsAre(2, 2, 2));
}

TEST(NodePlanTest, RefusesSharesThatDoNotFit) {
  EXPECT_EQ(WorkersByNode(3, 1, std::vector<uint32_t>{2, 4}).status().message(),
            "--workers-per-node has 2 numbers, and there are 3 nodes");
  EXPECT_EQ(WorkersByNode(2, 1, std::vector<uint32_t>{0, 0}).status().message(),
            "--workers-per-node leaves no worker");
}

TEST(NodePlanTest, ShardsGoRoundAndWorkersCountOn) {
  ClusterSpec cluster = {.servers = {"a:1", "b:1"}, .workers = 7};

  EXPECT_EQ(Plan(cluster, {2, 4, 1}),
            "server-0 worker-0 worker-1 \n"
            "server-1 worker-2 worker-3 worker-4 worker-5 \n"
            "worker-6 \n");
  cluster.servers = {"a:1", "b:1", "c:1"};
  EXPECT_EQ(Plan(cluster, {0, 7}),
            "server-0 server-2 \n"
            "server-1 worker-0 worker-1 worker-2 worker-3 worker-4 worker-5 worker-6 \n");
}

TEST(NodePlanTest, AggregatorsAreWithTheFirstWorkerOfTheirGroup) {
  ClusterSpec cluster = {.servers = {"a:1", "b:1"}, .workers = 4};
  cluster.tree.fanout = 2;

  EXPECT_EQ(Plan(cluster, {1, 3}),
            "server-0 aggregator-0.0 aggregator-0.1 worker-0 \n"
            "server-1 aggregator-1.0 aggregator-1.1 worker-1 worker-2 worker-3 \n");
}

}  // namespace
}  // namespace slipstream
