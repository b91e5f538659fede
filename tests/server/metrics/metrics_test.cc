#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proto/status.pb.h"
#include "server/metrics/metric_set.h"
#include "server/metrics/process_metrics.h"
#include "server/metrics/run_metrics.h"
#include "server/metrics/shard_metrics.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::Not;

MetricSet::Labels Labels() { return {{"run", "mnist"}, {"run_id", "00c0ffee00c0ffee"}}; }

TEST(MetricSetTest, GivesEachNameItsKindItsHelpAndTheCommonLabels) {
  MetricSet metrics(Labels());
  metrics.Counter("pushes_total", "Pushes.", 7, {{"worker", "3"}});
  metrics.Counter("pushes_total", "Pushes.", 8, {{"worker", "4"}});

  EXPECT_EQ(metrics.Text(),
            "# HELP slipstream_pushes_total Pushes.\n"
            "# TYPE slipstream_pushes_total counter\n"
            "slipstream_pushes_total{run=\"mnist\",run_id=\"00c0ffee00c0ffee\",worker=\"3\"} 7\n"
            "slipstream_pushes_total{run=\"mnist\",run_id=\"00c0ffee00c0ffee\",worker=\"4\"} 8\n");
}

TEST(MetricSetTest, KeepsWhatPeersSayWithinTheirLabels) {
  MetricSet metrics({});
  metrics.Gauge("info", "Info.", 1, {{"policy", "a\"} 1\nslipstream_forged 1"}});

  EXPECT_THAT(metrics.Text(), Not(HasSubstr("\nslipstream_forged")));
  EXPECT_THAT(metrics.Text(), HasSubstr(R"(policy="a\"} 1\nslipstream_forged 1")"));
}

TEST(MetricSetTest, AddsUpTheBucketsOfADistribution) {
  v1::TimeHistogram times;
  for (const double bound : {0.1, 1.0}) times.add_bounds(bound);
  for (const uint64_t count : {3, 2, 1}) times.add_counts(count);
  times.set_sum_seconds(6.5);
  MetricSet metrics({});
  metrics.Histogram("sync_seconds", "Syncs.", times);

  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("slipstream_sync_seconds_count 6\n"));
  EXPECT_THAT(text, HasSubstr("slipstream_sync_seconds_sum 6.5\n"));
  EXPECT_THAT(text, HasSubstr("slipstream_sync_seconds_bucket{le=\"0.1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("slipstream_sync_seconds_bucket{le=\"1\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("slipstream_sync_seconds_bucket{le=\"+Inf\"} 6\n"));
}

TEST(ShardMetricsTest, PutEachStalenessIntoTheBucketThatEndsWithItOrBehind) {
  v1::ShardStatus shard;
  shard.set_shard(1);
  for (int lag = 0; lag < 1024; ++lag) shard.mutable_staleness()->add_histogram(1);
  shard.mutable_staleness()->set_count(1024);
  shard.mutable_staleness()->set_mean(511.5);
  MetricSet metrics({});
  AddShardMetrics(shard, metrics);

  const std::string text = metrics.Text();
  for (const char* line :
       {"staleness_bucket{shard=\"1\",le=\"0\"} 1\n", "staleness_bucket{shard=\"1\",le=\"6\"} 7\n",
        "staleness_bucket{shard=\"1\",le=\"1022\"} 1023\n",
        "staleness_bucket{shard=\"1\",le=\"+Inf\"} 1024\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, HasSubstr("staleness_sum{shard=\"1\"} 523776\n"));
}

TEST(ShardMetricsTest, EndABucketWithTheGuardsBound) {
  v1::ShardStatus shard;
  for (int lag = 0; lag < 20; ++lag) shard.mutable_staleness()->add_histogram(1);
  shard.mutable_guard()->set_bound(10);
  MetricSet metrics({});
  AddShardMetrics(shard, metrics);

  EXPECT_THAT(metrics.Text(), HasSubstr("staleness_bucket{shard=\"0\",le=\"10\"} 11\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("staleness_bucket{shard=\"0\",le=\"12\"} 13\n"));
}

TEST(RunMetricsTest, HaveASeriesForEachPhaseAndStateThatThereIs) {
  v1::RunStatus status;
  status.set_phase(v1::TRAINING);
  v1::WorkerStatus& worker = *status.add_workers();
  worker.set_worker(3);
  worker.set_state("dead");
  MetricSet metrics({});
  AddRunMetrics(status, metrics);

  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("slipstream_run_phase{phase=\"TRAINING\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("slipstream_run_phase{phase=\"FAILED\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("slipstream_worker_state{worker=\"3\",state=\"dead\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("slipstream_worker_state{worker=\"3\",state=\"live\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("slipstream_worker_step_seconds")));
}

TEST(ProcessMetricsTest, TellOfThisProcess) {
  ProcessCounts counts = {.certificate_ends = absl::FromUnixSeconds(1'800'000'000),
                          .refusals = 5,
                          .closed = {{"silent", 2}}};
  MetricSet metrics({});
  AddProcessMetrics(counts, metrics);

  const std::string text = metrics.Text();
  EXPECT_THAT(text, testing::ContainsRegex("\nprocess_resident_memory_bytes [1-9]"));
  EXPECT_THAT(text, testing::ContainsRegex("\nprocess_open_fds [1-9]"));
  EXPECT_THAT(text, testing::ContainsRegex("\nprocess_start_time_seconds 1[0-9.e+]*"));
  EXPECT_THAT(text, HasSubstr("slipstream_auth_refusals_total 5\n"));
  EXPECT_THAT(text, HasSubstr("slipstream_connections_closed_total{reason=\"silent\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("slipstream_certificate_expiry_timestamp_seconds 1800000000\n"));
}

}  // namespace
}  // namespace slipstream
