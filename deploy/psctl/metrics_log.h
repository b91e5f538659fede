#ifndef SLIPSTREAM_DEPLOY_PSCTL_METRICS_LOG_H_
#define SLIPSTREAM_DEPLOY_PSCTL_METRICS_LOG_H_

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

/// The figures of one moment: phase, epoch, batches_done, updates, pushes, examples,
/// examples_per_second, train_loss and train_accuracy (null before the first report, the latter
/// also where the loss knows no classes), staleness {mean, window}, versions (by shard) and, where
/// there are evaluations of a number above `evaluation_told`, those as `evaluations`.
nlohmann::ordered_json MetricsJson(const v1::RunStatus& status, uint64_t evaluation_told);

/// When the steps of `worker` after step `told` did what, oldest first, in seconds since the Unix
/// epoch on its clock, to the microsecond: worker, step, batch, `forward` and `backward` as [begin,
/// end], how long forward waited for weights, and for each shard [begin, end] of `push` and of
/// `pull`.
nlohmann::ordered_json LanesJson(const v1::WorkerStatus& worker, uint64_t told);

/// metrics.jsonl: how a run went, one object per line whenever something changed, for plots.
///
/// Lanes are what makes it large, the more of it the more workers and shards there are, so they
/// have an allowance: kLanesAtOnce bytes, and kLanesPerSecond for every second of the run. While
/// there is none left, lines come without lanes; once there is, the next has those of all workers
/// together, as far as they are still told of, and may overdraw it. So a short run has them all, a
/// long one moments with all workers side by side, ever further apart the larger they are.
///
/// Not thread-safe: one owner.
class MetricsLog {
 public:
  static constexpr double kLanesAtOnce = 8 << 20;
  static constexpr double kLanesPerSecond = 1 << 10;

  /// Replaces the file.
  explicit MetricsLog(const std::string& path);

  /// Adds a line beginning with `t` (seconds since the cluster was started) if anything but the
  /// time differs from the last line. `lanes` are those of steps not told before: of every
  /// heartbeat a few, so there are gaps between them. DATA_LOSS if it cannot be written: the file
  /// then ends as it did before, with a whole line, and what is new comes with the next line that
  /// can.
  absl::Status Add(absl::Duration since_start, const v1::RunStatus& status);

 private:
  /// The newest step told of a worker.
  struct Told {
    uint64_t incarnation = 0;
    uint64_t step = 0;
  };
  using StepsTold = std::map<uint32_t, Told>;  // By worker.

  /// Those of steps that are not among `steps_told`, which are brought up to date.
  static nlohmann::ordered_json NewLanes(const v1::RunStatus& status, StepsTold& steps_told);

  absl::Status Append(const std::string& line);

  const std::string path_;
  const FileDescriptor file_;
  const int open_error_;  // 0: it is open.
  off_t size_ = 0;        // Of whole lines.
  nlohmann::ordered_json last_;
  uint64_t evaluation_told_ = 0;
  StepsTold steps_told_;
  double lane_bytes_ = 0;  // Of the allowance, spent.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_METRICS_LOG_H_
