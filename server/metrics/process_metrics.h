#ifndef SLIPSTREAM_SERVER_METRICS_PROCESS_METRICS_H_
#define SLIPSTREAM_SERVER_METRICS_PROCESS_METRICS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "server/metrics/metric_set.h"

namespace slipstream {

/// The figures of a process that are neither of the shard nor of the run.
struct ProcessCounts {
  /// When the certificate ends, or the authority's, if that is sooner; never without one.
  absl::Time certificate_ends = absl::InfiniteFuture();

  /// Calls that were refused for who made them, and connections that were closed, by reason.
  uint64_t refusals = 0;
  std::map<std::string, uint64_t> closed;
};

/// Adds what every process has: what Prometheus' own clients tell of one (process_...), the build,
/// lines of the log, and `counts`.
void AddProcessMetrics(const ProcessCounts& counts, MetricSet& metrics);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_METRICS_PROCESS_METRICS_H_
