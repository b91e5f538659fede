#ifndef SLIPSTREAM_DEPLOY_PSCTL_METRICS_LOG_H_
#define SLIPSTREAM_DEPLOY_PSCTL_METRICS_LOG_H_

#include <cstdint>
#include <fstream>
#include <map>
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

/// When the steps of `worker` after step `told` did what, oldest first, in seconds since the Unix
/// epoch on its clock: worker, step, batch, `forward` and `backward` as [begin, end], how long
/// forward waited for weights, and for each shard [begin, end] of `push` and of `pull`.
nlohmann::ordered_json LanesJson(const v1::WorkerStatus& worker, uint64_t told);

/// metrics.jsonl: how a run went, one object per line whenever something changed, for plots.
///
/// Not thread-safe: one owner.
class MetricsLog {
 public:
  /// Replaces the file. What cannot be written is left out; a run does not fail for its plots.
  explicit MetricsLog(const std::string& path) : file_(path, std::ios::trunc) {}

  /// Adds a line, flushed, beginning with `t` (seconds since the cluster was started) if anything
  /// but the time differs from the last line. `lanes` are those of steps not told before: of every
  /// heartbeat a few, so there are gaps between them.
  void Add(absl::Duration since_start, const v1::RunStatus& status);

 private:
  /// The newest step told of a worker.
  struct Told {
    uint64_t incarnation = 0;
    uint64_t step = 0;
  };

  nlohmann::ordered_json TakeLanes(const v1::RunStatus& status);

  std::ofstream file_;
  nlohmann::ordered_json last_;
  int evaluations_told_ = 0;
  std::map<uint32_t, Told> steps_told_;  // By worker.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_METRICS_LOG_H_
