#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_METRICS_LOG_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_METRICS_LOG_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/files/file_descriptor.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Returns the figures of one moment: phase, policy, stage, learning_rate, epoch, batches_done,
/// updates, pushes, examples, examples_per_second, train_loss and train_accuracy (null before the
/// first report, the latter also if the loss has no classes), staleness {mean, window}, versions
/// (by shard), and, if there are some with a number above `evaluation_told` and `event_told`,
/// `evaluations` and `events`.
nlohmann::ordered_json MetricsJson(const v1::RunStatus& status, uint64_t evaluation_told,
                                   uint64_t event_told = 0);

/// Returns the times of the steps of `worker` after step `told`, the oldest first, in seconds since
/// the Unix epoch on the worker's clock, to the microsecond: worker, step, batch, `forward` and
/// `backward` as [begin, end], how long forward waited for weights, and for each shard [begin, end]
/// of `push` and of `pull`.
nlohmann::ordered_json LanesJson(const v1::WorkerStatus& worker, uint64_t told);

/// metrics.jsonl: the course of a run for plots, with one object per line whenever something
/// changed.
///
/// Lanes make the file large, the more so the more workers and shards there are. They therefore
/// have an allowance: kLanesAtOnce bytes, and kLanesPerSecond more for every second of the run.
/// While it is used up, lines have no lanes. Once some is left, the next line has the lanes of all
/// workers that are still reported, and may overdraw the allowance. A short run thus has all lanes,
/// and a long one has moments with all workers side by side, which are further apart the larger
/// they are.
///
/// Not thread-safe: one owner.
class MetricsLog {
 public:
  static constexpr double kLanesAtOnce = 8 << 20;
  static constexpr double kLanesPerSecond = 1 << 10;

  /// Replaces the file.
  explicit MetricsLog(const std::string& path);

  /// Adds a line beginning with `t` (seconds since the cluster was started) if anything but the
  /// time differs from the last line. `lanes` are those of steps not reported before. Each
  /// heartbeat has only a few of them, so there are gaps. DATA_LOSS if the line cannot be written:
  /// the file then ends with the line before, and the news comes with the next line that can be
  /// written.
  absl::Status Add(absl::Duration since_start, const v1::RunStatus& status);

 private:
  /// The newest reported step of a worker.
  struct Told {
    uint64_t incarnation = 0;
    uint64_t step = 0;
  };
  using StepsTold = std::map<uint32_t, Told>;  // By worker.

  /// Returns the lanes of steps that are not among `steps_told`, and adds them there.
  static nlohmann::ordered_json NewLanes(const v1::RunStatus& status, StepsTold& steps_told);

  absl::Status Append(const std::string& line);

  const std::string path_;
  const FileDescriptor file_;
  const int open_error_;  // 0 if the file is open.
  off_t size_ = 0;        // The bytes of whole lines.
  nlohmann::ordered_json last_;
  uint64_t evaluation_told_ = 0;
  uint64_t event_told_ = 0;
  StepsTold steps_told_;
  double lane_bytes_ = 0;  // The part of the allowance that is spent.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_METRICS_LOG_H_
