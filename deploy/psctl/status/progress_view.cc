#include "deploy/psctl/status/progress_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/process/exit_code.h"
#include "deploy/psctl/status/divergence.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

constexpr size_t kBarWidth = 24;
constexpr size_t kBarWidthMin = 8;  // A shorter bar shows nothing.
constexpr std::string_view kBetweenParts = "  ";

// Workers that push less often than this are slow, or wait for something.
constexpr double kStillSecondsMax = 2;

bool IsUnderWay(v1::Phase phase) {
  return phase == v1::TRAINING || phase == v1::DRAINING || phase == v1::EVALUATING;
}

/// A part of the line. Parts of a higher rank stay longer where the line is short.
struct Figure {
  std::string text;
  int rank = 0;
};

double BatchesShare(const v1::RunStatus& status) {
  if (status.batches_total() == 0) return 0;
  const double share =
      static_cast<double>(status.batches_done()) / static_cast<double>(status.batches_total());
  return std::min(share, 1.0);
}

std::string PaceText(const v1::RunStatus& status) {
  if (status.examples() == 0) return "no update yet";
  return ThreeDigits(status.examples_per_second()) + " examples/s";
}

/// Returns "no gradient for 12.4 s", or nothing while workers push.
std::string StillText(const v1::RunStatus& status) {
  double seconds = 0;
  for (const v1::WaitingRound& round : status.waiting_rounds()) {
    seconds = std::max(seconds, round.unchanged_seconds());
  }
  if (seconds < kStillSecondsMax) return "";
  return "no gradient for " + DurationText(absl::Seconds(seconds));
}

/// Returns the figures in the order in which they are read.
std::vector<Figure> Figures(const v1::RunStatus& status) {
  const std::string of_all =
      status.epochs_total() > 0 ? fmt::format("/{}", status.epochs_total()) : "";
  const bool has_reports = HasReports(status);
  std::vector<Figure> figures = {
      {fmt::format("epoch {}{}", CurrentEpoch(status), of_all), 3},
      {has_reports ? fmt::format("train loss {:.4f}", status.train_loss()) : "train loss -", 2}};
  if (status.has_train_accuracy() || !has_reports) {
    const std::string share =
        has_reports ? fmt::format("{:.1f}%", 100 * status.train_accuracy()) : "-";
    figures.push_back({"train accuracy " + share, 1});
  }
  figures.push_back({PaceText(status), 5});
  if (const std::string still = StillText(status); !still.empty()) figures.push_back({still, 6});
  figures.push_back({fmt::format("staleness {:.2f}", status.staleness().window_mean()), 4});
  if (const auto left = TimeLeft(status)) figures.push_back({DurationText(*left) + " left", 7});
  return figures;
}

std::string Join(const std::vector<Figure>& figures) {
  std::string text;
  for (const Figure& figure : figures) {
    if (!text.empty()) text += kBetweenParts;
    text += figure.text;
  }
  return text;
}

/// Returns the figures that fit into `columns` characters.
std::string JoinWithin(std::vector<Figure> figures, size_t columns) {
  std::string text = Join(figures);
  while (DisplayWidth(text) > columns && !figures.empty()) {
    figures.erase(std::ranges::min_element(figures, {}, &Figure::rank));
    text = Join(figures);
  }
  return text;
}

/// Returns "[====    ] ", at most `columns` long, or nothing if that is too short for a bar.
std::string ProgressBar(double done, size_t columns) {
  constexpr size_t kFrame = std::string_view("[] ").size();
  if (columns < kBarWidthMin + kFrame) return "";
  const size_t width = std::min(kBarWidth, columns - kFrame);
  const auto filled = static_cast<size_t>(done * static_cast<double>(width));
  return fmt::format("[{}{}] ", std::string(filled, '='), std::string(width - filled, ' '));
}

/// Returns "3" or "3.02".
std::string EpochText(const v1::EvaluationStatus& evaluation) {
  // The final evaluation is named by the last epoch, even if gradients were dropped.
  if (evaluation.final() || evaluation.epochs_measured() <= 0) {
    return fmt::format("{}", evaluation.epoch());
  }
  return fmt::format("{:.6g}", std::round(100 * evaluation.epochs_measured()) / 100);
}

/// Returns " at version 1406", or nothing if the versions are not known.
std::string VersionText(const v1::EvaluationStatus& evaluation) {
  if (evaluation.versions().empty()) return "";
  const auto [least, most] = std::ranges::minmax(evaluation.versions());
  return least == most ? fmt::format(" at version {}", least)
                       : fmt::format(" at versions {} to {}", least, most);
}

}  // namespace

absl::Status FailureOf(const v1::RunStatus& status) {
  if (status.phase() != v1::FAILED) return absl::OkStatus();
  const std::string why = "the run failed: " + status.failure();
  return HasDiverged(status) ? DivergedError(why) : RunFailedError(why);
}

std::string_view PhaseText(v1::Phase phase) {
  switch (phase) {
    case v1::WAITING_FOR_SERVERS:
      return "waiting for servers";
    case v1::WAITING_FOR_WORKERS:
      return "waiting for workers";
    case v1::INITIALIZING:
      return "initializing";
    case v1::TRAINING:
      return "training";
    case v1::DRAINING:
      return "closing the last rounds";
    case v1::EVALUATING:
      return "measuring the final weights";
    case v1::FINISHED:
      return "finished";
    case v1::FAILED:
      return "failed";
    default:
      return "starting";
  }
}

double DoneShare(const v1::RunStatus& status) {
  const double share = BatchesShare(status);
  if (status.seconds_max() <= 0) return share;
  return std::min(std::max(share, status.seconds() / status.seconds_max()), 1.0);
}

uint32_t CurrentEpoch(const v1::RunStatus& status) {
  const bool is_in_one = status.phase() == v1::TRAINING && BatchesShare(status) < 1;
  return status.epochs() + (is_in_one ? 1 : 0);
}

std::optional<absl::Duration> TimeLeft(const v1::RunStatus& status) {
  const double done = DoneShare(status);
  if (status.phase() != v1::TRAINING || done <= 0 || status.seconds() <= 0) return std::nullopt;
  return absl::Seconds(status.seconds() * (1 - done) / done);
}

bool HasReports(const v1::RunStatus& status) {
  return std::ranges::any_of(status.workers(),
                             [](const v1::WorkerStatus& worker) { return worker.examples() > 0; });
}

std::string FormatProgress(const v1::RunStatus& status, size_t columns) {
  const std::string_view phase = PhaseText(status.phase());
  // The first status of a training may not know the data yet.
  if (!IsUnderWay(status.phase()) || status.batches_total() == 0) {
    return Ellipsize(phase, columns);
  }
  const std::string share = fmt::format("{} {:.1f}%{}", std::string(phase), 100 * DoneShare(status),
                                        std::string(kBetweenParts));
  const size_t room = columns - std::min(columns, share.size());
  const std::string text = share + JoinWithin(Figures(status), room);
  return Ellipsize(text.substr(0, text.find_last_not_of(' ') + 1), columns);
}

std::string FormatProgressBar(const v1::RunStatus& status, size_t columns) {
  const double done = DoneShare(status);
  const std::string share = fmt::format("{:5.1f}%{}", 100 * done, std::string(kBetweenParts));
  const size_t room = columns - std::min(columns, share.size());
  const std::string text = status.phase() == v1::TRAINING ? JoinWithin(Figures(status), room)
                                                          : std::string(PhaseText(status.phase()));
  const size_t width = DisplayWidth(text);
  return Ellipsize(ProgressBar(done, room - std::min(room, width)) + share + text, columns);
}

std::string FormatEvaluation(const v1::EvaluationStatus& evaluation) {
  const std::string accuracy = evaluation.has_test_accuracy()
                                   ? fmt::format("test accuracy {}, ", AccuracyText(evaluation))
                                   : "";
  return fmt::format("{}epoch {}: {}test loss {:.4f}{} ({} examples in {})",
                     evaluation.final() ? "final weights, " : "", EpochText(evaluation), accuracy,
                     evaluation.test_loss(), VersionText(evaluation), evaluation.examples(),
                     DurationText(absl::Seconds(evaluation.seconds()))) +
         (evaluation.model_failure().empty()
              ? ""
              : "; NOT SAVED: " + Printable(evaluation.model_failure()));
}

}  // namespace slipstream
