#include "server/status/worker_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace slipstream {
namespace {

absl::Status CheckShares(const v1::HeartbeatRequest& heartbeat) {
  const std::pair<std::string_view, double> shares[] = {
      {"train_accuracy is a share of the examples", heartbeat.train_accuracy()},
      {"compute_share is a share of the time", heartbeat.compute_share()},
      {"communication_share is a share of the time", heartbeat.communication_share()},
      {"communication_hidden is a share of communication", heartbeat.communication_hidden()},
      {"overlap is a share of the time", heartbeat.overlap()},
      {"steady_overlap is a share of the time", heartbeat.steady_overlap()}};
  for (const auto& [what, share] : shares) {
    // Not a number fails this comparison, too.
    if (share >= 0 && share <= 1) continue;
    return absl::InvalidArgumentError(fmt::format("{}, and not {}", what, share));
  }
  return absl::OkStatus();
}

/// Returns whether all times of the step are numbers; they are those of the worker's clock.
bool HasTimes(const v1::StepTimes& step) {
  double sum =
      step.forward_begin() + step.backward_begin() + step.backward_end() + step.waited_seconds();
  for (const v1::LaneTimes& lane : step.lanes()) {
    sum += lane.push_begin() + lane.push_end() + lane.pull_begin() + lane.pull_end();
  }
  return std::isfinite(sum);
}

absl::Status Check(const v1::HeartbeatRequest& heartbeat, size_t shards) {
  const size_t what = heartbeat.nonfinite().what().size();
  if (what > kNonfiniteWhatBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("nonfinite.what has {} bytes, at most {}", what, kNonfiniteWhatBytesMax));
  }
  for (const v1::StepTimes& step : heartbeat.recent_steps()) {
    const auto lanes = static_cast<size_t>(step.lanes_size());
    if (lanes > shards) {
      return absl::InvalidArgumentError(
          fmt::format("recent_steps.lanes has {} lanes, and the run {} shards", lanes, shards));
    }
    if (HasTimes(step)) continue;
    return absl::InvalidArgumentError(
        fmt::format("recent_steps has a time that is no number, in step {}", step.step()));
  }
  if (absl::Status shares = CheckShares(heartbeat); !shares.ok()) return shares;
  // A loss may be a NaN or an infinity, as training may diverge.
  const double rate = heartbeat.examples_per_second();
  if (!(rate >= 0 && std::isfinite(rate))) {
    return absl::InvalidArgumentError(fmt::format("examples_per_second is {}", rate));
  }
  if (heartbeat.recent_examples() > heartbeat.examples()) {
    return absl::InvalidArgumentError(
        fmt::format("recent_examples is {}, and the worker has computed {} examples",
                    heartbeat.recent_examples(), heartbeat.examples()));
  }
  const v1::NonfiniteStatus& nonfinite = heartbeat.nonfinite();
  if (nonfinite.in_a_row() <= nonfinite.total()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("nonfinite.in_a_row is {} of {}", nonfinite.in_a_row(), nonfinite.total()));
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
  figures.set_steady_overlap(heartbeat.steady_overlap());
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
