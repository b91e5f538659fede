#include "deploy/psctl/progress_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/printable.h"

namespace slipstream {
namespace {

constexpr size_t kBarWidth = 24;
constexpr size_t kBarWidthMin = 8;  // A shorter one says nothing.
constexpr std::string_view kGap = "  ";

bool IsUnderWay(v1::Phase phase) {
  return phase == v1::TRAINING || phase == v1::DRAINING || phase == v1::EVALUATING;
}

/// A part of the line; those with a higher rank stay longer where room is short.
struct Figure {
  std::string text;
  int rank = 0;
};

/// In the order in which they are read.
std::vector<Figure> Figures(const v1::RunStatus& status, uint32_t epochs_total) {
  const std::string of_all = epochs_total > 0 ? fmt::format("/{}", epochs_total) : "";
  const bool has_reports = HasReports(status);
  std::vector<Figure> figures = {
      {fmt::format("epoch {}{}", CurrentEpoch(status), of_all), 3},
      {has_reports ? fmt::format("loss {:.4f}", status.train_loss()) : "loss -", 2},
      {fmt::format("{:.0f} examples/s", status.examples_per_second()), 5},
      {fmt::format("staleness {:.2f}", status.staleness().window_mean()), 4}};
  if (status.has_train_accuracy() || !has_reports) {
    const std::string share =
        has_reports ? fmt::format("{:.1f}%", 100 * status.train_accuracy()) : "-";
    figures.insert(figures.begin() + 2, {"accuracy " + share, 1});
  }
  if (const auto left = SecondsLeft(status)) {
    figures.push_back({FormatSeconds(*left) + " left", 6});
  }
  return figures;
}

std::string Join(const std::vector<Figure>& figures) {
  std::string text;
  for (const Figure& figure : figures) {
    if (!text.empty()) text += kGap;
    text += figure.text;
  }
  return text;
}

/// The figures that `columns` characters have room for.
std::string JoinWithin(std::vector<Figure> figures, size_t columns) {
  std::string text = Join(figures);
  while (text.size() > columns && !figures.empty()) {
    figures.erase(std::ranges::min_element(figures, {}, &Figure::rank));
    text = Join(figures);
  }
  return text;
}

/// "[====    ] ", at most `columns` long; nothing if that is too short for one.
std::string Bar(double done, size_t columns) {
  constexpr size_t kFrame = std::string_view("[] ").size();
  if (columns < kBarWidthMin + kFrame) return "";
  const size_t width = std::min(kBarWidth, columns - kFrame);
  const auto filled = static_cast<size_t>(done * static_cast<double>(width));
  return fmt::format("[{}{}] ", std::string(filled, '='), std::string(width - filled, ' '));
}

/// " at version 1406"; nothing if the versions are not known.
std::string VersionText(const v1::EvaluationStatus& evaluation) {
  if (evaluation.versions().empty()) return "";
  const auto [least, most] = std::ranges::minmax(evaluation.versions());
  return least == most ? fmt::format(" at version {}", least)
                       : fmt::format(" at versions {} to {}", least, most);
}

}  // namespace

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
  if (status.batches_total() == 0) return 0;
  const double share =
      static_cast<double>(status.batches_done()) / static_cast<double>(status.batches_total());
  return std::min(share, 1.0);
}

uint32_t CurrentEpoch(const v1::RunStatus& status) {
  const bool is_in_one = status.phase() == v1::TRAINING && DoneShare(status) < 1;
  return status.epochs() + (is_in_one ? 1 : 0);
}

std::optional<double> SecondsLeft(const v1::RunStatus& status) {
  const double done = DoneShare(status);
  if (status.phase() != v1::TRAINING || done <= 0 || status.seconds() <= 0) return std::nullopt;
  return status.seconds() * (1 - done) / done;
}

std::string FormatSeconds(double seconds) {
  const auto whole = static_cast<uint64_t>(std::ceil(std::max(seconds, 0.0)));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
}

bool HasReports(const v1::RunStatus& status) {
  return std::ranges::any_of(status.workers(),
                             [](const v1::WorkerStatus& worker) { return worker.examples() > 0; });
}

std::string FormatProgress(const v1::RunStatus& status, uint32_t epochs_total) {
  const std::string_view phase = PhaseText(status.phase());
  // The first status of a training may not know the data yet.
  if (!IsUnderWay(status.phase()) || status.batches_total() == 0) return std::string(phase);
  return fmt::format("{} {:.1f}%  {}", phase, 100 * DoneShare(status),
                     Join(Figures(status, epochs_total)));
}

std::string FormatProgressBar(const v1::RunStatus& status, uint32_t epochs_total, size_t columns) {
  const double done = DoneShare(status);
  const std::string share = fmt::format("{:5.1f}%{}", 100 * done, kGap);
  const size_t room = columns - std::min(columns, share.size());
  const std::string text = status.phase() == v1::TRAINING
                               ? JoinWithin(Figures(status, epochs_total), room)
                               : std::string(PhaseText(status.phase()));
  std::string line = Bar(done, room - std::min(room, text.size())) + share + text;
  if (line.size() > columns) line.resize(columns);
  return line;
}

std::string FormatEvaluation(const v1::EvaluationStatus& evaluation) {
  const std::string accuracy =
      evaluation.has_test_accuracy()
          ? fmt::format("test accuracy {:.2f}%, ", 100 * evaluation.test_accuracy())
          : "";
  return fmt::format("{} {}: {}test loss {:.4f}{} ({} examples in {:.1f} s)",
                     evaluation.final() ? "final weights, epoch" : "epoch", evaluation.epoch(),
                     accuracy, evaluation.test_loss(), VersionText(evaluation),
                     evaluation.examples(), evaluation.seconds()) +
         (evaluation.model_failure().empty()
              ? ""
              : "; NOT SAVED: " + Printable(evaluation.model_failure()));
}

}  // namespace slipstream
