#ifndef SLIPSTREAM_SERVER_METRICS_METRIC_SET_H_
#define SLIPSTREAM_SERVER_METRICS_METRIC_SET_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/shard_status.pb.h"

namespace slipstream {

/// The figures of one scrape, in the order in which their names first came.
///
/// Not thread-safe: one owner.
class MetricSet {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// `common` are labels of all figures.
  explicit MetricSet(Labels common) : common_(std::move(common)) {}

  /// Adds a figure. Names have "slipstream_" put before, but for those that begin with "process_",
  /// and units at their end; all figures of a name have one kind, one help and the same labels.
  void Gauge(std::string_view name, std::string_view help, double value, Labels labels = {});
  void Counter(std::string_view name, std::string_view help, double value, Labels labels = {});

  /// Adds a distribution: `counts[i]` fell into the i-th bucket, which ends with `bounds[i]`, and
  /// the last, beyond all bounds, has the rest; `sum` is that of all that was counted.
  void Histogram(std::string_view name, std::string_view help, const std::vector<double>& bounds,
                 const std::vector<uint64_t>& counts, double sum, Labels labels = {});
  void Histogram(std::string_view name, std::string_view help, const v1::TimeHistogram& times,
                 Labels labels = {});

  /// Returns all of it in Prometheus' text format.
  std::string Text() const;

 private:
  prometheus::ClientMetric& Add(std::string_view name, std::string_view help,
                                prometheus::MetricType type, Labels labels);

  const Labels common_;
  std::vector<prometheus::MetricFamily> families_;
  std::map<std::string, size_t> places_;  // In families_, by name.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_METRICS_METRIC_SET_H_
