#include "server/metrics/shard_metrics.h"

#include <algorithm>
#include <string>
#include <vector>

namespace slipstream {
namespace {

using Labels = MetricSet::Labels;

/// Adds the distribution of staleness: fine where most gradients are, and coarse beyond. The
/// guard's `bound`, or 0, ends a bucket, so that it is known how many gradients exceed it.
void AddStaleness(const v1::StalenessStatus& staleness, uint64_t bound, const Labels& labels,
                  MetricSet& metrics) {
  std::vector<double> bounds = {0,  1,  2,  3,  4,   6,   8,   12,  16,  24,
                                32, 48, 64, 96, 128, 192, 256, 384, 512, 1022};
  const auto edge = std::ranges::lower_bound(bounds, static_cast<double>(bound));
  if (edge != bounds.end() && *edge != static_cast<double>(bound)) {
    bounds.insert(edge, static_cast<double>(bound));
  }
  std::vector<uint64_t> counts(bounds.size() + 1);
  size_t bucket = 0;
  for (int lag = 0; lag < staleness.histogram_size(); ++lag) {
    while (bucket < bounds.size() && lag > bounds[bucket]) ++bucket;
    counts[bucket] += staleness.histogram(lag);
  }
  const double sum = staleness.mean() * static_cast<double>(staleness.count());
  metrics.Histogram("staleness",
                    "By how many versions gradients lagged behind the version they were applied "
                    "to.",
                    bounds, counts, sum, labels);
  metrics.Gauge("staleness_window_mean", "The mean of that over the last 100 updates.",
                staleness.window_mean(), labels);
}

void AddPushes(const v1::ShardStatus& status, const Labels& labels, MetricSet& metrics) {
  for (const auto& [outcome, count] : status.outcomes()) {
    Labels with = labels;
    with.emplace_back("outcome", outcome);
    metrics.Counter("push_outcomes_total", "Pushes by what became of them.",
                    static_cast<double>(count), std::move(with));
  }
  metrics.Histogram("push_handling_seconds",
                    "From the last byte of a push to the decision about it.", status.push_times(),
                    labels);
  metrics.Counter("received_bytes_total", "Bytes of values that were pushed.",
                  static_cast<double>(status.pushed_bytes()), labels);
  metrics.Counter("sent_bytes_total", "Bytes of weights that were given out.",
                  static_cast<double>(status.pulled_bytes()), labels);
  metrics.Gauge("queued_bytes", "Bytes of pushes that wait for their update.",
                static_cast<double>(status.bytes_queued()), labels);
  metrics.Gauge("queued_bytes_limit", "As many may wait.",
                static_cast<double>(status.bytes_queued_max()), labels);
  metrics.Gauge("parked_calls", "Calls that wait for a version.", status.parked_calls(), labels);
  if (!status.has_guard()) return;
  const v1::GuardStatus& guard = status.guard();
  const auto add = [&](const char* action, uint64_t count) {
    Labels with = labels;
    with.emplace_back("action", action);
    metrics.Counter("guard_actions_total", "How often the staleness guard engaged.",
                    static_cast<double>(count), std::move(with));
  };
  metrics.Gauge("staleness_bound", "The staleness guard's bound.",
                static_cast<double>(guard.bound()), labels);
  add("reject", guard.rejected());
  add("drop", guard.dropped());
  add("scale", guard.scaled());
  add("block", guard.rounds_held_back());
}

void AddRounds(const v1::ShardStatus& status, const Labels& labels, MetricSet& metrics) {
  metrics.Gauge("shard_version", "The version of the shard's weights.",
                static_cast<double>(status.version()), labels);
  metrics.Gauge("shard_updates_per_second", "Versions made per second, over the last few seconds.",
                status.updates_per_second(), labels);
  metrics.Gauge("shard_learning_rate", "The learning rate with its schedule.",
                status.learning_rate(), labels);
  metrics.Gauge("round_open_seconds", "How long ago the open round began.",
                status.round_open_seconds(), labels);
  metrics.Gauge("round_gradients", "The gradients that the open round has.",
                status.round_contributions(), labels);
  metrics.Gauge("round_size", "The gradients that a round combines.", status.round_size(), labels);
  metrics.Histogram("round_duration_seconds", "From the begin of a round to its close.",
                    status.round_times(), labels);
}

void AddDurability(const v1::ShardStatus& status, const Labels& labels, MetricSet& metrics) {
  metrics.Gauge("shard_generation", "How often the shard has gone on from a checkpoint.",
                static_cast<double>(status.generation()), labels);
  metrics.Counter("versions_lost_total", "Versions that were lost by that.",
                  static_cast<double>(status.versions_lost()), labels);
  metrics.Counter("checkpoint_failures_total", "How often a checkpoint could not be made.",
                  static_cast<double>(status.checkpoint_failures()), labels);
  if (status.has_checkpoint()) {
    const v1::CheckpointStatus& checkpoint = status.checkpoint();
    metrics.Gauge("checkpoint_age_seconds", "How long ago the newest checkpoint was complete.",
                  checkpoint.age_seconds(), labels);
    metrics.Gauge("checkpoint_bytes", "Its size.", static_cast<double>(checkpoint.bytes()), labels);
    metrics.Gauge("checkpoint_write_seconds", "How long it took to write.",
                  checkpoint.write_seconds(), labels);
  }
  if (status.has_log()) {
    metrics.Counter("log_bytes_total", "Bytes written to the log of pushes that survive.",
                    static_cast<double>(status.log().bytes()), labels);
    metrics.Histogram("log_sync_seconds", "How long it takes until a batch is on the disk.",
                      status.log().sync_times(), labels);
  }
  if (status.has_disk_free_bytes()) {
    metrics.Gauge("disk_free_bytes", "The room on the disk of durability.directory.",
                  static_cast<double>(status.disk_free_bytes()), labels);
  }
}

}  // namespace

void AddShardMetrics(const v1::ShardStatus& status, MetricSet& metrics) {
  const Labels labels = {{"shard", std::to_string(status.shard())}};
  AddRounds(status, labels, metrics);
  AddStaleness(status.staleness(), status.guard().bound(), labels, metrics);
  AddPushes(status, labels, metrics);
  AddDurability(status, labels, metrics);
  if (status.memory_limit_bytes() > 0) {
    metrics.Gauge("memory_limit_bytes", "The memory that the server may use.",
                  static_cast<double>(status.memory_limit_bytes()), labels);
  }
  if (status.memory_needed_bytes() > 0) {
    metrics.Gauge("memory_needed_bytes", "The memory that it needs for its shard.",
                  static_cast<double>(status.memory_needed_bytes()), labels);
  }
}

void AddAggregatorMetrics(const v1::AggregatorStatus& status, MetricSet& metrics) {
  const Labels labels = {{"group", std::to_string(status.group())},
                         {"shard", std::to_string(status.shard())}};
  metrics.Counter("aggregator_parts_total", "Pushes that the aggregator has combined.",
                  static_cast<double>(status.parts()), labels);
  metrics.Counter("aggregator_composites_total", "What it has sent upward for them.",
                  static_cast<double>(status.composites()), labels);
  metrics.Counter("aggregator_sent_back_total", "Pushes that their workers had to send themselves.",
                  static_cast<double>(status.sent_back()), labels);
  metrics.Gauge("aggregator_waiting_seconds", "How long the oldest push waits for the others.",
                status.waiting_seconds(), labels);
}

}  // namespace slipstream
