#ifndef SLIPSTREAM_SERVER_METRICS_RUN_METRICS_H_
#define SLIPSTREAM_SERVER_METRICS_RUN_METRICS_H_

#include "proto/status.pb.h"
#include "server/metrics/metric_set.h"

namespace slipstream {

/// Adds what the coordinator knows: figures of the run, of each worker (label `worker`) and of each
/// reader (label `reader`). The number of series is bounded: per worker 18, for as many
/// workers as have ever come, and per reader 7, for the 64 that a status lists.
void AddRunMetrics(const v1::RunStatus& status, MetricSet& metrics);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_METRICS_RUN_METRICS_H_
