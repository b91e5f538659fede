#ifndef SLIPSTREAM_DEPLOY_PSCTL_METRICS_LOG_H_
#define SLIPSTREAM_DEPLOY_PSCTL_METRICS_LOG_H_

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/time/time.h"
#include "proto/status.pb.h"

namespace slipstream {

/// The figures of one moment: phase, epoch, batches_done, updates, pushes, examples,
/// examples_per_second, train_loss and train_accuracy (null before the first report, the latter
/// also where the loss knows no classes), staleness {mean, window}, versions (by shard) and, where
/// there are more than `evaluations_told`, the new `evaluations`.
nlohmann::ordered_json MetricsJson(const v1::RunStatus& status, int evaluations_told);

/// metrics.jsonl: how a run went, one object per line whenever something changed, for plots.
///
/// Not thread-safe: one owner.
class MetricsLog {
 public:
  /// Replaces the file. What cannot be written is left out; a run does not fail for its plots.
  explicit MetricsLog(const std::string& path) : file_(path, std::ios::trunc) {}

  /// Adds a line, flushed, beginning with `t` (seconds since the cluster was started) if anything
  /// but the time differs from the last line.
  void Add(absl::Duration since_start, const v1::RunStatus& status);

 private:
  std::ofstream file_;
  nlohmann::ordered_json last_;
  int evaluations_told_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_METRICS_LOG_H_
