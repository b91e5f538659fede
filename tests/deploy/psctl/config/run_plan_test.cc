#include "deploy/psctl/config/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/model/presets.h"
#include "common/settings/shards.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::Not;

RunSpec Spec() {
  RunSpec spec;
  spec.model = *FindPreset("mlp");
  spec.data.train_examples = 1000;
  spec.training.batch_size = 32;
  spec.cluster.workers = 30;
  spec.cluster.servers = {"localhost:7070", "localhost:7071"};
  return spec;
}

TEST(RunPlanTest, SaysWhatSoftsyncReallyIsWhereNDoesNotDivideTheWorkers) {
  RunSpec spec = Spec();
  spec.consistency.parameters["n"] = 4;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->round_size, 7u);
  EXPECT_DOUBLE_EQ(plan->effective_n, 30.0 / 7);
  EXPECT_DOUBLE_EQ(plan->expected_staleness, 29.0 / 7);
}

TEST(RunPlanTest, SaysWhichNMeansTheSame) {
  RunSpec spec = Spec();
  spec.consistency.parameters["n"] = 18;
  EXPECT_THAT(PlanText(spec, *PlanRun(spec)), HasSubstr("softsync (n = 18, the same as n = 30)"));

  spec.policies_before = {{.consistency = spec.consistency, .until_epoch = 2}};
  spec.consistency.parameters["n"] = 30;
  EXPECT_THAT(
      PlanText(spec, *PlanRun(spec)),
      HasSubstr("softsync (n = 18, the same as n = 30) until epoch 2, then softsync (n = 30)\n"));

  spec.policies_before.clear();
  spec.consistency.parameters["n"] = 7;
  EXPECT_THAT(PlanText(spec, *PlanRun(spec)), HasSubstr("softsync (n = 7)\n"));
}

TEST(RunPlanTest, InATreeGroupsAndTheirPushesMakeTheStaleness) {
  RunSpec spec = Spec();
  spec.cluster.workers = 8;
  spec.cluster.tree.fanout = 2;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_DOUBLE_EQ(plan->expected_staleness, 3.0 / 4);
  EXPECT_THAT(PlanText(spec, *plan), HasSubstr("8 (4 before each server)"));
  EXPECT_EQ(PlanJson(spec, *plan)["aggregators"], 8);
}

TEST(RunPlanTest, ExpectsTheStalenessOfAllGradientsUnderWay) {
  RunSpec spec = Spec();
  spec.consistency.parameters["n"] = 15;
  spec.training.pipeline_depth = 2;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_DOUBLE_EQ(plan->expected_staleness, 59.0 / 2);
}

// In three pushes from one fetch to the next, each of 30 workers pushes once, twice and thrice
// since its fetch: 29, 59 and 89 other pushes come before.
TEST(RunPlanTest, ExpectsMoreStalenessWhereWeightsAreFetchedSeldom) {
  RunSpec spec = Spec();
  spec.consistency.policy = PolicyKind::kAsync;
  spec.worker.algorithm = AlgorithmKind::kDownpour;
  spec.worker.parameters["push_every"] = 4;
  spec.worker.parameters["fetch_every"] = 12;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_DOUBLE_EQ(plan->expected_staleness, 59);
}

TEST(RunPlanTest, SaysThatSlowerWorkersTakeFewerStepsAndOnHowManyThreads) {
  RunSpec spec = Spec();
  spec.worker.algorithm = AlgorithmKind::kLocalSgd;
  spec.worker.steps_by_speed = true;
  spec.worker.threads = 4;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(PlanText(spec, *plan),
              HasSubstr("local_sgd (steps = 8, fewer of slower workers, on 4 threads), "));
}

TEST(RunPlanTest, SaysThatLanesAreFree) {
  RunSpec spec = Spec();
  spec.worker.lanes = WorkerSpec::Lanes::kFree;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(PlanText(spec, *plan), HasSubstr("gradient (free lanes)"));
}

TEST(RunPlanTest, SaysWhatWorkersSaveOfTheirState) {
  RunSpec spec = Spec();
  spec.worker.algorithm = AlgorithmKind::kEamsgd;
  spec.optimizer.kind = RuleKind::kNesterov;
  spec.wire.push_codec = Encoding::kTopK;
  const auto without = PlanRun(spec);
  ASSERT_TRUE(without.ok());
  EXPECT_THAT(PlanText(spec, *without), Not(HasSubstr("workers save")));
  spec.worker.save_state.directory = "/var/lib/state";

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(PlanText(spec, *plan),
              HasSubstr("every 10s to /var/lib/state: rounding errors of topk, weights of eamsgd, "
                        "state of nesterov"));
}

TEST(RunPlanTest, SaysWhatKeepingTheBasesOfGradientsCosts) {
  RunSpec spec = Spec();
  const auto without = PlanRun(spec);
  spec.optimizer.staleness_scaling = StalenessScaling::kDelayCompensated;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(without.ok() && plan.ok());
  EXPECT_EQ(without->base_weights_bytes, 0u);
  const size_t largest = std::max(plan->shards[0].size(), plan->shards[1].size());
  EXPECT_EQ(plan->base_weights_bytes, size_t{2 * 30} * largest * sizeof(float));
  EXPECT_EQ(plan->server_bytes, without->server_bytes + plan->base_weights_bytes);
  EXPECT_THAT(PlanText(spec, *plan), HasSubstr("for the weights that gradients under way"));
}

TEST(RunPlanTest, SaysWhatAWorkerTakesBesideItsData) {
  RunSpec spec = Spec();
  const auto plan = PlanRun(spec);
  spec.training.pipeline_depth += 1;

  const auto deeper = PlanRun(spec);

  ASSERT_TRUE(plan.ok() && deeper.ok());
  EXPECT_GE(plan->worker_bytes, 3 * plan->parameters * sizeof(float));
  EXPECT_GE(deeper->worker_bytes, plan->worker_bytes + 2 * plan->parameters * sizeof(float));
  EXPECT_THAT(PlanText(spec, *plan), HasSubstr(BytesText(plan->worker_bytes) + " beside its data"));
  EXPECT_EQ(PlanJson(spec, *plan)["worker_bytes"], plan->worker_bytes);
}

TEST(RunPlanTest, CountsWhatAggregatorsHold) {
  RunSpec spec = Spec();
  const auto plan = PlanRun(spec);
  spec.cluster.tree.fanout = 8;

  const auto tree = PlanRun(spec);

  ASSERT_TRUE(plan.ok() && tree.ok());
  const uint64_t arrays = uint64_t{spec.cluster.groups()} * 9 * spec.training.pipeline_depth;
  EXPECT_GE(tree->machine_bytes, plan->machine_bytes + arrays * plan->parameters * sizeof(float));
}

TEST(RunPlanTest, AGpuHoldsTheValuesBetweenLayers) {
  RunSpec spec = Spec();
  const auto plan = PlanRun(spec);
  spec.compute.device.kind = DeviceChoice::Kind::kAnyCuda;

  const auto on_gpu = PlanRun(spec);

  ASSERT_TRUE(plan.ok() && on_gpu.ok());
  EXPECT_LT(on_gpu->worker_bytes, plan->worker_bytes);
  EXPECT_EQ(MemoryWarning(spec, on_gpu->machine_bytes), "");
  EXPECT_THAT(PlanText(spec, *on_gpu), HasSubstr("beside its data and its GPU's own memory"));
}

TEST(RunPlanTest, CountsSharedDataOnceAndTheRestForEachProcess) {
  RunSpec spec = Spec();
  spec.data.format = DataSpec::Format::kCifar10;
  const auto plan = PlanRun(spec);
  spec.cluster.workers += 10;

  const auto more = PlanRun(spec);

  ASSERT_TRUE(plan.ok() && more.ok());
  EXPECT_EQ(plan->data->shared, 6u * 30'730'000);
  EXPECT_EQ(plan->data->each, 60'000 * sizeof(uint32_t));
  const uint64_t of_worker = plan->worker_bytes - plan->evaluation_bytes + plan->data->each;
  EXPECT_GE(more->machine_bytes, plan->machine_bytes + 10 * of_worker);
  EXPECT_LT(more->machine_bytes, plan->machine_bytes + 10 * (of_worker + (20 << 20)));
  EXPECT_THAT(PlanText(spec, *more), HasSubstr("175.8 MiB that the workers of a machine share"));
  EXPECT_EQ(PlanJson(spec, *more)["data_bytes_shared"], more->data->shared);
  EXPECT_EQ(MemoryWarning(spec, more->machine_bytes), "");
  EXPECT_THAT(MemoryWarning(spec, more->machine_bytes - 1), HasSubstr("free on this machine"));
}

TEST(RunPlanTest, ExpectsNoStalenessUnderHardsync) {
  RunSpec spec = Spec();
  spec.consistency.policy = ConsistencySpec::Policy::kHardsync;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->round_size, 30u);
  EXPECT_EQ(plan->expected_staleness, 0);
}

TEST(RunPlanTest, ExpectsNoStalenessUnderAllReduceWhoseUpdateIsOfAllGradients) {
  RunSpec spec;
  spec.model = *FindPreset("mlp");
  spec.cluster.workers = 4;
  spec.consistency.policy = PolicyKind::kAllReduce;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->round_size, 4u);
  EXPECT_EQ(plan->expected_staleness, 0);
}

TEST(RunPlanTest, ExpectsNoMoreStalenessThanTheGuardLetsPass) {
  RunSpec spec = Spec();
  spec.consistency.policy = ConsistencySpec::Policy::kAsync;
  using Action = StalenessGuardSpec::Action;
  for (const Action action : {Action::kReject, Action::kBlock, Action::kDrop}) {
    spec.consistency.max_staleness = {.action = action, .bound = 4};

    const auto plan = PlanRun(spec);

    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->expected_staleness, 4);
    EXPECT_THAT(PlanText(spec, *plan), HasSubstr("expected mean staleness   at most 4\n"));
  }
}

TEST(RunPlanTest, ExpectsTheUsualStalenessUnderAGuardThatItDoesNotMeet) {
  RunSpec spec = Spec();
  spec.consistency.policy = ConsistencySpec::Policy::kAsync;
  for (const StalenessGuardSpec guard :
       {StalenessGuardSpec{.action = StalenessGuardSpec::Action::kScale, .bound = 4},
        StalenessGuardSpec{.action = StalenessGuardSpec::Action::kReject, .bound = 29}}) {
    spec.consistency.max_staleness = guard;

    const auto plan = PlanRun(spec);

    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->expected_staleness, 29);
    EXPECT_THAT(PlanText(spec, *plan), HasSubstr("expected mean staleness   29\n"));
  }
}

TEST(RunPlanTest, CutsTheModelAndCountsBatches) {
  const auto plan = PlanRun(Spec());

  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->parameters, 235'146u);
  ASSERT_EQ(plan->shards.size(), 2u);
  EXPECT_EQ(plan->shards[0].end, plan->shards[1].begin);
  EXPECT_EQ(plan->shards[1].end, 235'146u);
  EXPECT_EQ(plan->batches_per_epoch, 32u);
}

TEST(RunPlanTest, DoesNotGuessWhatOnlyTheDataKnows) {
  RunSpec spec = Spec();
  spec.data.format = DataSpec::Format::kIdx;

  const auto plan = PlanRun(spec);

  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->batches_per_epoch.has_value());
  EXPECT_TRUE(PlanJson(spec, *plan)["batches_per_epoch"].is_null());
  EXPECT_THAT(PlanText(spec, *plan), HasSubstr("known once a worker has read the data"));
}

TEST(RunPlanTest, RefusesMoreShardsThanTheModelHasRoomFor) {
  RunSpec spec = Spec();
  spec.model.preset.clear();
  spec.model.layers = {FlattenLayer{}, DenseLayer{.units = 2}};
  spec.model.input = {1, 2, 2};
  spec.cluster.servers.assign(11, "localhost:0");

  EXPECT_FALSE(PlanRun(spec).ok());
}

}  // namespace
}  // namespace slipstream
