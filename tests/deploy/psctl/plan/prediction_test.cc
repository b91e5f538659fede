#include "deploy/psctl/prediction/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "common/model/presets.h"
#include "deploy/psctl/plan/plan_view.h"
#include "deploy/psctl/plan/verdicts.h"
#include "deploy/psctl/prediction/cost_sources.h"
#include "deploy/psctl/prediction/run_check.h"
#include "deploy/psctl/prediction/staleness_model.h"
#include "deploy/psctl/prediction/summary_plan.h"
#include "deploy/psctl/prediction/sweep.h"

namespace slipstream {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

/// The run of tests/benchmarks/tree_overlap.py: 54 workers, a model of 1 MB, 100 steps of each.
RunSpec TreeRun() {
  RunSpec run;
  run.model = {
      .input = {1, 28, 28},
      .layers = {FlattenLayer{}, DenseLayer{.units = 314}, ReluLayer{}, DenseLayer{.units = 10}}};
  run.data.train_examples = 4 * 54 * 100;
  run.training.batch_size = 4;
  run.cluster.workers = 54;
  return run;
}

constexpr double kModelBytes = 4.0 * (314 * 785 + 315 * 10);

/// The link takes a unit of time for the model, and computing 6.35 of them.
RunCosts TreeCosts() {
  RunCosts costs;
  costs.compute_fixed = 6.351355655582441;
  costs.link.bytes_per_second = kModelBytes;
  return costs;
}

RunSpec SmallRun(PolicyKind policy, uint32_t workers) {
  RunSpec run;
  run.model = *FindPreset("lenet5");
  run.training.batch_size = 10;
  run.consistency.policy = policy;
  run.cluster.workers = workers;
  return run;
}

Prediction PredictionOf(const RunSpec& run, const RunCosts& costs) {
  const auto prediction = Predict(run, costs);
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return *prediction;
}

TEST(PredictionTest, HidesWhatTheModelOfTheTreesBenchmarkHides) {
  RunSpec run = TreeRun();
  const Prediction base = PredictionOf(run, TreeCosts());
  EXPECT_NEAR(base.overlap, 0.1152, 1e-6);

  run.cluster.tree.fanout = 9;
  const Prediction tree = PredictionOf(run, TreeCosts());
  EXPECT_NEAR(tree.overlap, 0.63259, 1e-5);
  ASSERT_TRUE(tree.overlap_whole.has_value());
  EXPECT_NEAR(*tree.overlap_whole, 0.60030, 1e-5);  // deploy/docs/performance.md: 60.0 %.
  EXPECT_NEAR(tree.staleness, 5.0 / 6, 1e-9);

  run.worker.lanes = WorkerSpec::Lanes::kFree;
  const Prediction free = PredictionOf(run, TreeCosts());
  EXPECT_DOUBLE_EQ(free.overlap, 1);
  EXPECT_NEAR(*free.overlap_whole, 0.99064, 1e-5);  // Six aggregators take the first weights.
}

TEST(PredictionTest, PartsMakeUpTheStep) {
  for (const PolicyKind policy :
       {PolicyKind::kHardsync, PolicyKind::kAsync, PolicyKind::kSsp, PolicyKind::kBackup,
        PolicyKind::kAllReduce, PolicyKind::kHogwild}) {
    RunCosts costs;
    costs.compute_per_example = 1e-3;
    costs.compute_spread = 0.2;
    costs.update = 2e-4;
    costs.fold = 1e-4;
    costs.link = {.latency = 1e-4, .bytes_per_second = 1e8, .message = 1e-5};
    costs.ring = costs.link;
    for (const double processors : {0.0, 2.0}) {
      costs.processors = processors;
      costs.moves_by_processors = processors > 0;
      const Prediction p = PredictionOf(SmallRun(policy, 6), costs);
      EXPECT_NEAR(p.compute + p.exchange + p.update + p.waiting, p.step, 1e-9) << p.policy;
      EXPECT_LE(p.examples_per_second_min, p.examples_per_second) << p.policy;
      EXPECT_GE(p.examples_per_second_max, p.examples_per_second) << p.policy;
      EXPECT_EQ(p.processors_use.has_value(), processors > 0);
    }
  }
}

TEST(PredictionTest, HardsyncWaitsForAllAndBackupForTheFastest) {
  RunCosts costs;
  costs.compute_per_example = 1e-3;
  costs.compute_spread = 0.3;
  const Prediction all = PredictionOf(SmallRun(PolicyKind::kHardsync, 8), costs);
  EXPECT_NEAR(all.step, 1e-2 * FastestOf(8, 8, 0.3), 1e-12);
  EXPECT_NEAR(all.waiting, all.step - 1e-2, 1e-12);
  EXPECT_EQ(all.staleness, 0);
  EXPECT_EQ(all.staleness_beyond, 0);
  const Prediction seven = PredictionOf(SmallRun(PolicyKind::kBackup, 8), costs);
  EXPECT_NEAR(seven.step, 1e-2 * FastestOf(7, 8, 0.3), 1e-12);
  EXPECT_NEAR(seven.examples_per_second, 70 / seven.step, 1e-9);
  // Nobody waits under async, and under ssp the less the more slack there is.
  const Prediction async = PredictionOf(SmallRun(PolicyKind::kAsync, 8), costs);
  EXPECT_NEAR(async.step, 1e-2, 1e-12);
  RunSpec run = SmallRun(PolicyKind::kSsp, 8);
  const Prediction little = PredictionOf(run, costs);
  run.consistency.parameters["slack"] = 50;
  const Prediction much = PredictionOf(run, costs);
  EXPECT_GT(little.step, much.step);
  EXPECT_GT(all.step, little.step);
  EXPECT_GT(much.step, async.step);
}

/// Plays rounds of hardsync over links that serve one worker after another, and returns how long
/// one takes: `out` and `in` for a worker's weights and gradient, a mean of 1 for computing.
double PlayedRound(uint32_t workers, double spread, double out, double in) {
  std::mt19937_64 random(1);
  const double variance = std::log1p(spread * spread);
  std::lognormal_distribution<double> time(-variance / 2, std::sqrt(variance));
  constexpr int kRounds = 2000;
  double now = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> computed;
    for (uint32_t i = 1; i <= workers; ++i) computed.push_back(now + i * out + time(random));
    std::ranges::sort(computed);
    for (const double ready : computed) now = std::max(now, ready) + in;
  }
  return now / kRounds;
}

TEST(PredictionTest, HardsyncSendsWeightsWhileGradientsAreStillComputed) {
  RunSpec run = SmallRun(PolicyKind::kHardsync, 1);
  run.model.layers = {FlattenLayer{}, DenseLayer{.units = 10}};  // In one message.
  RunCosts costs;
  costs.compute_fixed = 1;
  costs.compute_spread = 0.1;
  for (const uint32_t workers : {1u, 4u, 16u, 54u}) {
    for (const double transfer : {1e-4, 1e-2, 0.1, 0.5}) {
      SCOPED_TRACE(testing::Message() << workers << " workers, " << transfer);
      run.cluster.workers = workers;
      costs.link.bytes_per_second = 4.0 * 7850 / transfer;
      const Prediction prediction = PredictionOf(run, costs);
      const double played = PlayedRound(workers, 0.1, transfer, transfer);
      EXPECT_NEAR(prediction.step, played, 0.08 * played);
      // Where transfers share the links, all end at once.
      EXPECT_NEAR(prediction.examples_per_second_min,
                  10 * workers / (FastestOf(workers, workers, 0.1) + 2 * workers * transfer), 1e-6);
    }
  }
  // The slower direction decides.
  run.wire.pull_codec = Encoding::kFp16;
  run.cluster.workers = 16;
  const double step = PredictionOf(run, costs).step;
  EXPECT_NEAR(step, PlayedRound(16, 0.1, 0.25, 0.5), 0.06 * step);
}

TEST(PredictionTest, AFullLinkDecides) {
  // The server's link takes 2 s a push, whatever the 54 workers compute.
  RunCosts costs = TreeCosts();
  costs.compute_fixed = 0;
  costs.link.bytes_per_second = kModelBytes / 2;
  RunSpec run = TreeRun();
  const Prediction one = PredictionOf(run, costs);
  EXPECT_GE(one.step, 54 * 2);
  EXPECT_LE(one.link_use, 1);
  EXPECT_GT(one.link_use, 0.9);
  EXPECT_NEAR(one.server_bytes_in, kModelBytes / 2 * one.link_use, 1);
  EXPECT_NEAR(*one.saturation, 2, 1e-9);  // Both directions at once, and nothing else to do.
  // Two servers carry half of it each.
  run.cluster.servers.push_back("localhost:7071");
  EXPECT_NEAR(PredictionOf(run, costs).step, one.step / 2, 0.05 * one.step);
}

TEST(PredictionTest, UnevenWorkersCountAsThePolicyTakesThem) {
  RunCosts costs;
  costs.compute_per_example = 1e-3;
  RunSpec run = SmallRun(PolicyKind::kAsync, 4);
  run.testing.workers.resize(4);
  run.testing.workers[3].slower = 4;
  // Three of 10 ms and one of 40: 3.25 pushes in 10 ms.
  EXPECT_NEAR(PredictionOf(run, costs).examples_per_second, 3250, 1e-6);
  const auto step_of = [&](PolicyKind policy) {
    run.consistency.policy = policy;
    return PredictionOf(run, costs).step;
  };
  EXPECT_NEAR(step_of(PolicyKind::kHardsync), 4e-2, 1e-12);
  EXPECT_NEAR(step_of(PolicyKind::kSsp), 4e-2, 1e-12);
  EXPECT_NEAR(step_of(PolicyKind::kBackup), 1e-2, 1e-12);
  // One of 30 that is four times slower makes 0.25/29.25 of the pushes, all beyond 2n.
  run = SmallRun(PolicyKind::kAsync, 30);
  run.testing.workers = {{.slower = 4}};
  EXPECT_NEAR(PredictionOf(run, costs).staleness_beyond, 0.25 / 29.25, 1e-6);
  // Waiting takes no processor.
  run = SmallRun(PolicyKind::kAsync, 4);
  run.testing.workers.assign(4, {.delay = absl::Milliseconds(90)});
  costs.processors = 1;
  EXPECT_LT(step_of(PolicyKind::kAsync), 0.115);
  EXPECT_DOUBLE_EQ(PredictionOf(run, costs).speed_up_max, 4);
}

TEST(PredictionTest, ProcessorsAreShared) {
  RunCosts costs;
  costs.compute_per_example = 1e-3;
  costs.processors = 2;
  costs.moves_by_processors = true;
  const Prediction p = PredictionOf(SmallRun(PolicyKind::kAsync, 8), costs);
  EXPECT_NEAR(p.step, 4e-2, 2e-4);
  EXPECT_NEAR(p.speed_up, 2, 0.01);
  EXPECT_DOUBLE_EQ(p.speed_up_max, 2);
  EXPECT_NEAR(p.overlap, 1, 1e-9);
  EXPECT_NEAR(*p.processors_use, 1, 0.01);
  EXPECT_NEAR(PredictionOf(SmallRun(PolicyKind::kHardsync, 8), costs).step, 4e-2, 1e-9);
  // Groups do not compute less.
  RunSpec tree = SmallRun(PolicyKind::kSoftsync, 8);
  for (const uint32_t fanout : {2, 4, 8}) {
    tree.cluster.tree.fanout = fanout;
    EXPECT_NEAR(PredictionOf(tree, costs).step, 4e-2, 1e-3) << fanout;
  }
}

TEST(PolicyVariantsTest, HasEachPolicyOnceAndItsOwnFirst) {
  RunSpec run = SmallRun(PolicyKind::kSoftsync, 8);
  run.consistency.parameters["n"] = 4;
  const auto names = [](const std::vector<RunSpec>& variants) {
    std::vector<std::string> texts;
    for (const RunSpec& variant : variants) {
      texts.push_back(PredictionOf(variant, RunCosts()).policy);
    }
    return texts;
  };
  EXPECT_THAT(names(PolicyVariants(run, 8)),
              ElementsAre("softsync (n = 4)", "hardsync", "softsync (n = 1)", "softsync (n = 8)",
                          "ssp (slack = 2)", "backup (backups = 1)", "allreduce"));
  EXPECT_THAT(names(PolicyVariants(run, 1)),
              ElementsAre("softsync (n = 4)", "hardsync", "softsync (n = 1)", "ssp (slack = 2)"));
  run.worker.algorithm = AlgorithmKind::kLocalSgd;
  EXPECT_EQ(PolicyVariants(run, 8).size(), 1u);
}

TEST(VerdictsTest, SayPlainlyWhatIsBetter) {
  RunSpec run = SmallRun(PolicyKind::kSoftsync, 4);
  RunCosts costs;
  costs.compute_per_example = 1e-5;
  costs.link = {.latency = 1e-3, .bytes_per_second = 1e6};
  costs.ring = {.latency = 1e-6, .bytes_per_second = 1e9};
  const auto verdicts_of = [&] {
    std::vector<Prediction> predictions;
    for (const RunSpec& variant : PolicyVariants(run, run.cluster.workers)) {
      predictions.push_back(PredictionOf(variant, costs));
    }
    return Verdicts(run, costs, predictions);
  };
  EXPECT_THAT(verdicts_of(), Contains(HasSubstr("ONE MACHINE ALONE IS BETTER")));
  EXPECT_THAT(verdicts_of(), Contains(HasSubstr("ALL-REDUCE IS BETTER")));
  EXPECT_THAT(verdicts_of(), Contains(HasSubstr("bytes decide")));
  costs.compute_per_example = 0.1;
  costs.link = {.latency = 1e-3, .bytes_per_second = 1e9};
  costs.ring = {.latency = 1, .bytes_per_second = 1e9};
  EXPECT_THAT(verdicts_of(), Contains(HasSubstr("T_sync/T_comp = 0.0")));
  EXPECT_THAT(verdicts_of(), Contains(HasSubstr("servers are better")));
  EXPECT_THAT(verdicts_of(), Contains(HasSubstr("small messages decide")));
  run.cluster.tree.fanout = 2;
  EXPECT_THAT(verdicts_of(), Contains(HasSubstr("2 of them one after another instead of 3")));
}

TEST(CostsTest, AreReadWithTheirUnits) {
  EXPECT_DOUBLE_EQ(*ParseCost(CostUnit::kSeconds, "50us"), 50e-6);
  EXPECT_DOUBLE_EQ(*ParseCost(CostUnit::kSeconds, "1.5ms"), 1.5e-3);
  EXPECT_FALSE(ParseCost(CostUnit::kSeconds, "5").has_value());
  EXPECT_FALSE(ParseCost(CostUnit::kSeconds, "-5s").has_value());
  EXPECT_FALSE(ParseCost(CostUnit::kSeconds, "inf").has_value());
  EXPECT_DOUBLE_EQ(*ParseCost(CostUnit::kBytesPerSecond, "1Gbit"), 125e6);
  EXPECT_DOUBLE_EQ(*ParseCost(CostUnit::kBytesPerSecond, "24GB/s"), 24e9);
  EXPECT_DOUBLE_EQ(*ParseCost(CostUnit::kBytesPerSecond, "2MiB"), 2 * 1048576);
  EXPECT_FALSE(ParseCost(CostUnit::kBytesPerSecond, "1").has_value());
  EXPECT_FALSE(ParseCost(CostUnit::kBytesPerSecond, "0Gbit").has_value());
  EXPECT_FALSE(ParseCost(CostUnit::kPlain, "nan").has_value());
  EXPECT_EQ(CostText(CostUnit::kSeconds, 1.5e-3), "1.5 ms");
  EXPECT_EQ(CostText(CostUnit::kBytesPerSecond, 125e6), "125 MB/s");
  EXPECT_EQ(CostText(CostUnit::kSeconds, 0), "0");
}

TEST(CostsTest, TheFirstSourceCountsAndTheRingHasTheLinkUnlessSaid) {
  KnownCosts known;
  known[PlaceOfCost("link_bandwidth")] = KnownCost{5, "given"};
  KnownCosts more;
  more[PlaceOfCost("link_bandwidth")] = KnownCost{7, "measured"};
  more[PlaceOfCost("link_latency")] = KnownCost{2, "measured"};
  AddMissing(known, more);
  EXPECT_EQ(CostsOf(known).link.bytes_per_second, 5);
  EXPECT_EQ(CostsOf(known).ring.bytes_per_second, 5);
  EXPECT_EQ(CostsOf(known).ring.latency, 2);
}

TEST(SweepTest, RangesDoubleAndListsAreTakenAsTheyAre) {
  EXPECT_THAT(*ParseSweep("workers=1..54"), ElementsAre(1, 2, 4, 8, 16, 32, 54));
  EXPECT_THAT(*ParseSweep("workers=30,2,1..4"), ElementsAre(1, 2, 4, 30));
  for (const char* wrong : {"1..4", "workers=", "workers=4..1", "workers=0", "workers=1,,2",
                            "workers=a", "workers=1..99999999"}) {
    EXPECT_FALSE(ParseSweep(wrong).has_value()) << wrong;
  }
}

TEST(CostSourcesTest, ReadsWhatPsLabPrints) {
  const std::string text =
      R"({"compute": {"fixed": 1, "per_example": 2, "spread": 0.1, "processor_share": 0.5},
      "update": {"rule": 3, "fold": 4}, "local": {"latency": 5, "bytes_per_second": 6,
      "message": 7}, "loopback": {"latency": 8, "bytes_per_second": 9, "message": 10},
      "processors": 2})";
  RunSpec run = SmallRun(PolicyKind::kAsync, 2);
  const auto known = ParseMeasured(text, run);
  ASSERT_TRUE(known.ok()) << known.status();
  const RunCosts costs = CostsOf(*known);
  EXPECT_EQ(costs.ComputeSeconds(10), 21);
  EXPECT_EQ(costs.link.latency, 5);
  EXPECT_EQ(costs.ring.bytes_per_second, 9);
  EXPECT_EQ(costs.processors, 2);
  EXPECT_THAT((*known)[PlaceOfCost("processors")]->origin, HasSubstr("had 50% of one"));
  run.wire.transport = WireSpec::Transport::kTcp;
  EXPECT_EQ(CostsOf(*ParseMeasured(text, run)).link.latency, 8);
  EXPECT_EQ(ParseMeasured("oops", run).status().code(), absl::StatusCode::kDataLoss);
}

TEST(CostSourcesTest, StepsOfARunTellItsCosts) {
  const std::string metrics =
      "{\"t\": 1}\nno JSON\n"
      R"({"lanes": [{"forward": [1, 2], "waited": 0.5, "backward": [2, 4],)"
      R"( "push": [[4, 5]], "pull": [[5, 6]]},)"
      R"( {"forward": [6, 7], "waited": 0, "backward": [7, 10.5], "push": [null], "pull": [null]}]})"
      "\n";
  RunSpec run = SmallRun(PolicyKind::kAsync, 2);
  run.cluster.servers = {"ps-0:7070"};
  const KnownCosts known = CostsOfSteps(metrics, run, "from runs/a");
  EXPECT_DOUBLE_EQ(known[PlaceOfCost("compute_per_example")]->value, 0.35);  // (2.5 + 4.5)/2/10.
  EXPECT_DOUBLE_EQ(known[PlaceOfCost("compute_spread")]->value, 1 / 3.5);
  EXPECT_DOUBLE_EQ(known[PlaceOfCost("link_bandwidth")]->value, 2 * 4 * 61'706 / 2.0);
  // Where processors are shared, the quickest tenth counts; what is added on purpose does not.
  run.cluster.servers = {"localhost:7070"};
  run.testing.workers = {{.delay = absl::Milliseconds(500), .slower = 2}};
  EXPECT_DOUBLE_EQ(CostsOfSteps(metrics, run, "")[PlaceOfCost("compute_per_example")]->value, 0.1);
  EXPECT_FALSE(CostsOfSteps("", run, "")[PlaceOfCost("compute_per_example")].has_value());
}

TEST(RunCheckTest, NamesTheLargestDeviation) {
  Prediction prediction;
  prediction.workers = 2;
  prediction.step = 0.1;
  prediction.examples_per_second = 200;
  prediction.effective_n = 2;
  prediction.staleness = 1;
  prediction.updates_per_second = 10;
  prediction.overlap = 0.5;
  const std::string summary = R"({"seconds": 10, "pushes": 200, "examples": 2200, "updates": 100,
      "staleness": {"mean": 1.5, "max": 5, "histogram": [50, 49, 0, 0, 0, 1]},
      "workers": [{"pushes": 100, "compute_share": 0.6, "overlap": 0.6},
                  {"pushes": 0, "compute_share": 0, "overlap": 0}]})";
  const auto figures = CheckRun(prediction, summary);
  ASSERT_TRUE(figures.ok()) << figures.status();
  const CheckedFigure& largest = LargestDeviation(*figures);
  EXPECT_EQ(largest.name, "mean staleness");
  EXPECT_NEAR(largest.deviation, 0.5, 1e-12);
  EXPECT_THAT(CheckText(*figures), HasSubstr("Largest deviation: mean staleness (+50.0%)"));
  const auto json = CheckJson(*figures);
  EXPECT_EQ(json["figures"][0]["measured"], 220);
  EXPECT_NEAR(json["figures"][5]["measured"].get<double>(), 0.01, 1e-12);  // σ = 5 > 2n.
  // Of all-reduce, servers see copies alone: examples tell the steps.
  prediction.is_all_reduce = true;
  const auto ring = CheckRun(prediction, summary);
  ASSERT_TRUE(ring.ok());
  EXPECT_DOUBLE_EQ((*ring)[1].measured, 10 * 200 * 0.1 / 2200);
  EXPECT_LT(ring->size(), figures->size());
  EXPECT_FALSE(CheckRun(prediction, "{}").ok());
  EXPECT_FALSE(CheckRun(prediction, "[]").ok());
}

TEST(SummaryPlanTest, SummariesHaveWhatWasToBeExpected) {
  const std::string directory = testing::TempDir() + "/summary_plan";
  std::filesystem::create_directories(directory);
  std::ofstream(directory + "/run.yaml") << "model: {preset: lenet5}\ncluster: {workers: 2}\n";
  nlohmann::ordered_json summary = {{"seconds", 1},
                                    {"pushes", 100},
                                    {"examples", 3200},
                                    {"updates", 50},
                                    {"staleness", {{"mean", 0.5}}}};
  EXPECT_TRUE(WithPlan(summary, directory)["plan"].is_null());  // It tells no steps.
  std::ofstream(directory + "/metrics.jsonl")
      << R"({"lanes": [{"worker": 0, "forward": [1, 1.01], "waited": 0, "backward": [1.01, 1.02],)"
      << R"( "push": [[1.02, 1.021]], "pull": [[1.021, 1.022]]}]})"
      << "\n";
  const nlohmann::ordered_json plan = WithPlan(summary, directory)["plan"];
  EXPECT_EQ(plan["figures"][1]["name"], "step");
  EXPECT_DOUBLE_EQ(plan["figures"][1]["measured"].get<double>(), 0.02);
  EXPECT_GE(plan["figures"][1]["predicted"].get<double>(), 0.022);
  EXPECT_TRUE(WithPlan(summary, directory + "/none")["plan"].is_null());
}

TEST(PlanViewTest, EachNumberNamesItsAssumptionAndEachCostItsOrigin) {
  PlanReport report = {.name = "demo", .costs = {}, .predictions = {}, .verdicts = {"So it is."}};
  report.costs[PlaceOfCost("link_latency")] = KnownCost{50e-6, "given"};
  report.predictions.push_back(PredictionOf(TreeRun(), TreeCosts()));
  const std::string text = PlanReportText(report);
  EXPECT_THAT(text, HasSubstr("--link-latency  50 us  (given)"));
  EXPECT_THAT(text, HasSubstr("conservation law"));
  EXPECT_THAT(text, HasSubstr("So it is."));
  const auto json = PlanReportJson(report);
  EXPECT_EQ(json["costs"]["link_latency"]["from"], "given");
  for (const auto& [key, assumption] : json["assumptions"].items()) {
    EXPECT_TRUE(key == "bounds" || json["predictions"][0].contains(key)) << key;
  }
}

}  // namespace
}  // namespace slipstream
