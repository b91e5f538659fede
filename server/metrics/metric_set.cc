#include "server/metrics/metric_set.h"

#include <prometheus/text_serializer.h>

#include <limits>

#include "common/base/check.h"

namespace slipstream {

prometheus::ClientMetric& MetricSet::Add(std::string_view name, std::string_view help,
                                         prometheus::MetricType type, Labels labels) {
  const bool is_standard = name.starts_with("process_");
  const std::string full = (is_standard ? "" : "slipstream_") + std::string(name);
  const auto [place, is_new] = places_.try_emplace(full, families_.size());
  if (is_new) families_.push_back({.name = full, .help = std::string(help), .type = type});
  prometheus::MetricFamily& family = families_[place->second];
  PS_CHECK(family.type == type);
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  for (const Labels* some : {&common_, static_cast<const Labels*>(&labels)}) {
    for (const auto& [label, value] : *some) metric.label.push_back({label, value});
  }
  return metric;
}

void MetricSet::Gauge(std::string_view name, std::string_view help, double value, Labels labels) {
  Add(name, help, prometheus::MetricType::Gauge, std::move(labels)).gauge.value = value;
}

void MetricSet::Counter(std::string_view name, std::string_view help, double value, Labels labels) {
  Add(name, help, prometheus::MetricType::Counter, std::move(labels)).counter.value = value;
}

void MetricSet::Histogram(std::string_view name, std::string_view help,
                          const std::vector<double>& bounds, const std::vector<uint64_t>& counts,
                          double sum, Labels labels) {
  PS_CHECK(counts.size() == bounds.size() + 1);
  prometheus::ClientMetric::Histogram& histogram =
      Add(name, help, prometheus::MetricType::Histogram, std::move(labels)).histogram;
  uint64_t count = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    count += counts[i];
    const bool is_last = i == bounds.size();
    histogram.bucket.push_back(
        {count, is_last ? std::numeric_limits<double>::infinity() : bounds[i]});
  }
  histogram.sample_count = count;
  histogram.sample_sum = sum;
}

void MetricSet::Histogram(std::string_view name, std::string_view help,
                          const v1::TimeHistogram& times, Labels labels) {
  if (times.counts_size() != times.bounds_size() + 1) return;  // Nothing was counted yet.
  Histogram(name, help, {times.bounds().begin(), times.bounds().end()},
            {times.counts().begin(), times.counts().end()}, times.sum_seconds(), std::move(labels));
}

std::string MetricSet::Text() const { return prometheus::TextSerializer().Serialize(families_); }

}  // namespace slipstream
