#include "deploy/psctl/status/run_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RunSummaryTest, HoldsWhatScriptsReadFromAStatus) {
  v1::RunStatus status = ExampleStatus();
  status.set_weights_sha256("ab12");
  status.set_ended_by("max_steps");
  *status.add_evaluations() = ExampleEvaluation(4, 0.5, false);
  *status.add_evaluations() = ExampleEvaluation(4, 0.9, true);

  const nlohmann::ordered_json summary = SummaryJson(status, "runs/demo", {});

  EXPECT_EQ(summary["name"], "demo");
  EXPECT_EQ(summary["policy"], "softsync");
  EXPECT_EQ(summary["policy_parameters"]["n"], 2);
  EXPECT_EQ(summary["test_accuracy"], 0.9);
  EXPECT_EQ(summary["test_loss"], 0.25);
  EXPECT_EQ(summary["ended_by"], "max_steps");
  EXPECT_EQ(summary["seconds"], 30);
  EXPECT_EQ(summary["examples_per_second"], 1234.4);
  EXPECT_EQ(summary["updates"], 100);
  EXPECT_EQ(summary["pushes"], 100);
  EXPECT_EQ(summary["staleness"].dump(),
            R"({"count":200,"mean":1.25,"window_mean":1.5,"p50":1,"p99":3,"max":3,)"
            R"("histogram":[40,90,50,20],"cdf":[]})");
  EXPECT_EQ(summary["weights_sha256"], "ab12");
  EXPECT_EQ(summary["run_dir"], "runs/demo");
  EXPECT_EQ(summary["evaluations"].size(), 2u);
  EXPECT_EQ(summary["evaluations"][1]["versions"].dump(), "[1406,1406]");
  EXPECT_EQ(summary["workers"].size(), 2u);
  EXPECT_EQ(summary["servers"][1]["end"], 61706);
}

TEST(RunSummaryTest, SaysWhichNMeansTheSame) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_policy_parameters(0)->set_value(18);
  status.set_workers_expected(30);
  EXPECT_EQ(PolicyText(status), "softsync (n = 18, 1 gradient per update, as n = 30)");

  status.mutable_policy_parameters(0)->set_value(30);
  EXPECT_EQ(PolicyText(status), "softsync (n = 30, 1 gradient per update)");

  status.clear_workers_expected();  // A coordinator of an older release does not tell it.
  EXPECT_EQ(PolicyText(status), "softsync (n = 30, 1 gradient per update)");
}

TEST(RunSummaryTest, TellsWhereARunDivergedAndHowStaleItWas) {
  v1::RunStatus status = ExampleStatus();
  status.set_phase(v1::FAILED);
  status.set_ended_by("diverged");
  status.set_epochs(2);
  status.set_batches_done(250);
  status.set_batches_total(1000);
  *status.add_evaluations() = ExampleEvaluation(2, 0.5, false);
  v1::NonfiniteStatus& nonfinite = *status.mutable_workers(1)->mutable_nonfinite();
  nonfinite.set_in_a_row(4);
  nonfinite.set_batch(253);
  nonfinite.set_what("a loss of nan");

  const nlohmann::ordered_json summary = SummaryJson(status, "d", {});
  const std::string text = SummaryText(status, "d");

  EXPECT_EQ(summary["ended_by"], "diverged");
  const nlohmann::ordered_json& divergence = summary["divergence"];
  EXPECT_EQ(divergence["epoch"], 3);
  EXPECT_EQ(divergence["updates"], 100);
  EXPECT_EQ(divergence["mini_batch"], 253);
  EXPECT_EQ(divergence["worker"], status.workers(1).worker());
  EXPECT_EQ(divergence["staleness_mean"], 1.25);
  EXPECT_EQ(divergence["staleness_window_mean"], 1.5);
  EXPECT_EQ(divergence["staleness_max"], 3);
  EXPECT_EQ(divergence["test_accuracy"], "not finite");
  EXPECT_TRUE(summary["test_accuracy"].is_null()) << "that of epoch 2 is not what the run reached";
  EXPECT_THAT(text, HasSubstr("in epoch 3, after 100 updates; mini-batch 253 of worker"));
  EXPECT_THAT(text, HasSubstr("mean 1.250, mean of the last 100 updates 1.500, max 3"));
  EXPECT_THAT(text, testing::ContainsRegex("test accuracy +not finite"));
}

TEST(RunSummaryTest, TheAccuracyOfWeightsWithoutAFiniteLossIsNotFinite) {
  v1::RunStatus status = ExampleStatus();
  status.set_ended_by("diverged");
  *status.add_evaluations() = ExampleEvaluation(4, 0.1, true);
  status.mutable_evaluations(0)->set_test_loss(std::numeric_limits<double>::quiet_NaN());

  const nlohmann::ordered_json summary = SummaryJson(status, "d", {});

  EXPECT_TRUE(summary["test_accuracy"].is_null());
  EXPECT_EQ(summary["divergence"]["test_accuracy"], "not finite");
  EXPECT_TRUE(summary["divergence"]["mini_batch"].is_null());
  EXPECT_THAT(SummaryText(status, "d"), testing::ContainsRegex("test accuracy +not finite"));
}

TEST(RunSummaryTest, ARunThatDidNotDivergeHasNoDivergence) {
  EXPECT_TRUE(SummaryJson(ExampleStatus(), "d", {})["divergence"].is_null());
}

TEST(RunSummaryTest, NamesTheFileOfEachModelThatWasSaved) {
  v1::RunStatus status = ExampleStatus();
  *status.add_evaluations() = ExampleEvaluation(4, 0.5, false);
  *status.add_evaluations() = ExampleEvaluation(5, 0.9, true);
  EXPECT_TRUE(SummaryJson(status, "d", {})["model"].is_null());

  status.mutable_evaluations(1)->set_model_file("/runs/d/model.safetensors");

  const nlohmann::ordered_json summary = SummaryJson(status, "d", {});
  EXPECT_EQ(summary["model"], "/runs/d/model.safetensors");
  EXPECT_TRUE(summary["evaluations"][0]["model"].is_null());
  EXPECT_EQ(summary["evaluations"][1]["model"], "/runs/d/model.safetensors");
  EXPECT_THAT(SummaryText(status, "d"), HasSubstr("/runs/d/model.safetensors\n"));
}

TEST(RunSummaryTest, WritesNullForWhatIsNoNumber) {
  v1::RunStatus status;
  status.set_seconds(std::numeric_limits<double>::infinity());

  const nlohmann::ordered_json summary = SummaryJson(status, "d", {});

  EXPECT_TRUE(summary["seconds"].is_null());
  EXPECT_TRUE(summary["test_accuracy"].is_null());
  EXPECT_TRUE(summary["evaluations"].is_array());
}

TEST(RunSummaryTest, HasNoAccuracyWhereTheLossKnowsNoClasses) {
  v1::RunStatus status = ExampleStatus();
  *status.add_evaluations() = ExampleEvaluation(4, 0.9, true);
  status.mutable_evaluations(0)->clear_test_accuracy();

  const nlohmann::ordered_json summary = SummaryJson(status, "d", {});

  EXPECT_TRUE(summary["test_accuracy"].is_null());
  EXPECT_TRUE(summary["evaluations"][0]["test_accuracy"].is_null());
  EXPECT_EQ(summary["test_loss"], 0.25);
  EXPECT_THAT(SummaryText(status, "d"), testing::Not(HasSubstr("accuracy")));
}

TEST(RunSummaryTest, HasNoParametersOfAPolicyThatTakesNone) {
  v1::RunStatus status = ExampleStatus();
  status.set_policy("async");
  status.clear_policy_parameters();

  EXPECT_EQ(SummaryJson(status, "d", {})["policy_parameters"].dump(), "{}");
}

TEST(RunSummaryTest, TellsHowARunEndedThatWasNotOver) {
  v1::RunStatus status = ExampleStatus();
  status.set_run(0xab12);

  const nlohmann::ordered_json summary = SummaryJson(status, "d",
                                                     {.ended_by = "interrupted",
                                                      .error = "stopped by signal 2 (Interrupt)",
                                                      .exit_code = 130,
                                                      .models = {"d/model-epoch-0001.safetensors"},
                                                      .has_whole_push_logs = false});

  EXPECT_EQ(summary["run"], "000000000000ab12");
  EXPECT_EQ(summary["ended_by"], "interrupted");
  EXPECT_EQ(summary["error"], "stopped by signal 2 (Interrupt)");
  EXPECT_EQ(summary["exit_code"], 130);
  EXPECT_EQ(summary["phase"], "TRAINING");
  EXPECT_EQ(summary["epochs"], 1);
  EXPECT_EQ(summary["models"].dump(), R"(["d/model-epoch-0001.safetensors"])");
  EXPECT_EQ(summary["push_logs_complete"], false);
  EXPECT_TRUE(summary["model"].is_null());
}

TEST(RunSummaryTest, HasNullForWhatARunOfWhichNothingWasHeardLacks) {
  const nlohmann::ordered_json summary = SummaryJson({}, "d", {});

  for (const auto* key : {"run", "ended_by", "error", "push_logs_complete", "model"}) {
    EXPECT_TRUE(summary[key].is_null()) << key;
  }
}

TEST(RunSummaryTest, ListsEachModelOnce) {
  v1::RunStatus status;
  status.add_evaluations()->set_model_file("/elsewhere/model-epoch-0001.safetensors");
  status.add_evaluations();

  EXPECT_THAT(ModelsOf(status, {"d/model.safetensors"}),
              ElementsAre("/elsewhere/model-epoch-0001.safetensors", "d/model.safetensors"));
}

TEST(RunSummaryTest, FlagsAPushLogThatWasCutOff) {
  v1::RunStatus status = ExampleStatus();
  status.mutable_shards(1)->set_push_log_pushes(7);
  status.mutable_shards(1)->set_push_log_failure("the push log d/p.csv ends after 7 pushes: full");

  const nlohmann::ordered_json server = SummaryJson(status, "d", {})["servers"][1];

  EXPECT_EQ(server["push_log_pushes"], 7);
  EXPECT_EQ(server["push_log_failure"], "the push log d/p.csv ends after 7 pushes: full");
  EXPECT_THAT(SummaryText(status, "d"),
              HasSubstr("push log       cut off: the push log d/p.csv ends after 7 pushes"));
}

TEST(RunSummaryTest, CountsReturnsToCheckpointsAndWhatTheyLost) {
  v1::RunStatus status = ExampleStatus();
  EXPECT_EQ(SummaryJson(status, "d", {})["returns"], 0);
  EXPECT_TRUE(SummaryJson(status, "d", {})["servers"][1]["checkpoint"].is_null());
  EXPECT_TRUE(SummaryJson(status, "d", {})["servers"][1]["returned_to"].is_null());
  EXPECT_THAT(SummaryText(status, "d"), testing::Not(HasSubstr("checkpoints")));

  status.set_checkpoint_interval_seconds(10);
  v1::ShardStatus& shard = *status.mutable_shards(1);
  shard.set_generation(2);
  shard.set_returned_to(60);
  shard.set_versions_lost(7);
  shard.mutable_checkpoint()->set_version(90);
  shard.mutable_checkpoint()->set_bytes(4096);
  shard.set_checkpoint_failure("disk full");

  const nlohmann::ordered_json summary = SummaryJson(status, "d", {});
  EXPECT_EQ(summary["returns"], 2);
  EXPECT_EQ(summary["servers"][0]["generation"], 0);
  const nlohmann::ordered_json& server = summary["servers"][1];
  EXPECT_EQ(server["generation"], 2);
  EXPECT_EQ(server["returned_to"], 60);
  EXPECT_EQ(server["versions_lost"], 7);
  EXPECT_EQ(server["checkpoint"]["version"], 90);
  EXPECT_EQ(server["checkpoint"]["bytes"], 4096);
  EXPECT_EQ(server["checkpoint_failure"], "disk full");
  EXPECT_THAT(SummaryText(status, "d"), HasSubstr("2 returns, at least 7 versions lost\n"));
}

TEST(RunSummaryTest, TellsScriptsOfAFailure) {
  EXPECT_EQ(FailureJson("no room", 74, "runs/demo").dump(),
            R"({"error":"no room","exit_code":74,"run_dir":"runs/demo"})");
  EXPECT_TRUE(FailureJson("no room", 74, "")["run_dir"].is_null());
}

TEST(RunSummaryTest, ShowsPeopleFiguresAndTheHistogram) {
  v1::RunStatus status = ExampleStatus();
  *status.add_evaluations() = ExampleEvaluation(4, 0.9, true);

  const std::string text = SummaryText(status, "runs/demo");

  EXPECT_THAT(text, HasSubstr("policy         softsync (n = 2, 1 gradient per update)\n"));
  EXPECT_THAT(text, HasSubstr("test accuracy  90.00%\n"));
  EXPECT_THAT(text, HasSubstr("time           30.0 s\n"));
  EXPECT_THAT(text, HasSubstr("staleness      mean 1.250, p50 1, p99 3, max 3\n"));
  EXPECT_THAT(text, HasSubstr("        1         90  45.0%   65.0%  ####"));
}

TEST(RunSummaryTest, SaysHowManyBytesTheValuesTookAndWhatShareOfFp32ThatIs) {
  v1::RunStatus status = ExampleStatus();
  for (v1::ShardStatus& shard : *status.mutable_shards()) {
    shard.set_pushed_bytes(512);
    shard.set_pushed_fp32_bytes(2048);
    shard.set_pulled_bytes(1 << 20);
    shard.set_pulled_fp32_bytes(1 << 20);
  }
  ASSERT_EQ(status.shards_size(), 2);

  EXPECT_THAT(SummaryText(status, "d"),
              HasSubstr("values         pushed 1.0 KiB (25.0% of fp32), pulled 2.0 MiB\n"));
  const nlohmann::ordered_json server = SummaryJson(status, "d", {})["servers"][0];
  EXPECT_EQ(server["pushed_bytes"], 512);
  EXPECT_EQ(server["pushed_fp32_bytes"], 2048);
}

TEST(RunSummaryTest, SaysWhichWorkersWereLostAndWhy) {
  v1::RunStatus status = ExampleStatus();
  EXPECT_EQ(SummaryJson(status, "d", {})["workers_lost"].dump(), "[]");
  EXPECT_TRUE(SummaryJson(status, "d", {})["workers"][1]["failure"].is_null());
  EXPECT_THAT(SummaryText(status, "d"), testing::Not(HasSubstr("lost")));
  status.mutable_workers(1)->set_state("dead");
  status.mutable_workers(1)->set_failure("signal 9 (Killed)");

  EXPECT_EQ(SummaryJson(status, "d", {})["workers_lost"].dump(), "[1]");
  EXPECT_EQ(SummaryJson(status, "d", {})["workers"][1]["failure"], "signal 9 (Killed)");
  EXPECT_THAT(SummaryText(status, "d"),
              HasSubstr("workers lost   1 of 2: worker 1 (signal 9 (Killed))\n"));
}

TEST(RunSummaryTest, TellsTheEpochOfTheWeightsThatWereMeasured) {
  v1::RunStatus status = ExampleStatus();
  *status.add_evaluations() = ExampleEvaluation(4, 0.9, false);
  *status.add_evaluations() = ExampleEvaluation(5, 0.9, false);
  status.mutable_evaluations(1)->clear_epochs_measured();

  const nlohmann::ordered_json summary = SummaryJson(status, "d", {});

  EXPECT_EQ(summary["evaluations"][0]["epoch"], 4);
  EXPECT_EQ(summary["evaluations"][0]["epochs_measured"], 4.024);
  EXPECT_TRUE(summary["evaluations"][1]["epochs_measured"].is_null());
}

}  // namespace
}  // namespace slipstream
