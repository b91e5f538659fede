#include "server/status/worker_figures.h"

#include <fmt/format.h>

#include <algorithm>

namespace slipstream {
namespace {

absl::Status Check(const v1::HeartbeatRequest& heartbeat, size_t shards) {
  const size_t what = heartbeat.nonfinite().what().size();
  if (what > kNonfiniteWhatBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("nonfinite.what has {} bytes, at most {}", what, kNonfiniteWhatBytesMax));
  }
  for (const v1::StepTimes& step : heartbeat.recent_steps()) {
    const auto lanes = static_cast<size_t>(step.lanes_size());
    if (lanes <= shards) continue;
    return absl::InvalidArgumentError(
        fmt::format("recent_steps.lanes has {} lanes, and the run {} shards", lanes, shards));
  }
  const double accuracy = heartbeat.train_accuracy();
  if (accuracy >= 0 && accuracy <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("train_accuracy is a share of the examples, and not {}", accuracy));
}

}  // namespace

absl::StatusOr<v1::HeartbeatRequest> FiguresOf(const v1::HeartbeatRequest& heartbeat,
                                               size_t shards) {
  if (absl::Status checked = Check(heartbeat, shards); !checked.ok()) return checked;
  v1::HeartbeatRequest figures;
  figures.set_examples(heartbeat.examples());
  figures.set_examples_per_second(heartbeat.examples_per_second());
  figures.set_recent_examples(heartbeat.recent_examples());
  figures.set_train_loss(heartbeat.train_loss());
  if (heartbeat.has_train_accuracy()) figures.set_train_accuracy(heartbeat.train_accuracy());
  figures.set_compute_share(heartbeat.compute_share());
  figures.set_communication_share(heartbeat.communication_share());
  figures.set_communication_hidden(heartbeat.communication_hidden());
  figures.set_overlap(heartbeat.overlap());
  figures.set_split_pushes(heartbeat.split_pushes());
  if (heartbeat.has_nonfinite()) *figures.mutable_nonfinite() = heartbeat.nonfinite();
  const int steps = heartbeat.recent_steps_size();
  for (int i = std::max(0, steps - kRecentStepsMax); i < steps; ++i) {
    *figures.add_recent_steps() = heartbeat.recent_steps(i);
  }
  // The copied messages may hold more than they should.
  figures.DiscardUnknownFields();
  return figures;
}

}  // namespace slipstream
