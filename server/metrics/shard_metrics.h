#ifndef SLIPSTREAM_SERVER_METRICS_SHARD_METRICS_H_
#define SLIPSTREAM_SERVER_METRICS_SHARD_METRICS_H_

#include "proto/status.pb.h"
#include "server/metrics/metric_set.h"

namespace slipstream {

/// Adds the figures of a shard, from what it tells the coordinator (label `shard`): about 90
/// series.
void AddShardMetrics(const v1::ShardStatus& status, MetricSet& metrics);

/// Adds those of an aggregator (labels `group` and `shard`).
void AddAggregatorMetrics(const v1::AggregatorStatus& status, MetricSet& metrics);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_METRICS_SHARD_METRICS_H_
