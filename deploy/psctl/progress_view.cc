#include "deploy/psctl/progress_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace slipstream {
namespace {

constexpr size_t kBarWidth = 24;

bool IsUnderWay(v1::Phase phase) {
  return phase == v1::TRAINING || phase == v1::DRAINING || phase == v1::EVALUATING;
}

std::string FormatFigures(const v1::RunStatus& status, uint32_t epochs_total) {
  std::string text = fmt::format("epoch {}", CurrentEpoch(status));
  if (epochs_total > 0) text += fmt::format("/{}", epochs_total);
  text += fmt::format("  loss {:.4f}  accuracy {:.1f}%  {:.0f} examples/s  staleness {:.2f}",
                      status.train_loss(), 100 * status.train_accuracy(),
                      status.examples_per_second(), status.staleness().window_mean());
  if (const auto left = SecondsLeft(status)) text += "  " + FormatSeconds(*left) + " left";
  return text;
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

std::string FormatProgress(const v1::RunStatus& status, uint32_t epochs_total) {
  const std::string_view phase = PhaseText(status.phase());
  // The first status of a training may not know the data yet.
  if (!IsUnderWay(status.phase()) || status.batches_total() == 0) return std::string(phase);
  return fmt::format("{} {:.1f}%  {}", phase, 100 * DoneShare(status),
                     FormatFigures(status, epochs_total));
}

std::string FormatProgressBar(const v1::RunStatus& status, uint32_t epochs_total, size_t columns) {
  const double done = DoneShare(status);
  const auto filled = static_cast<size_t>(done * kBarWidth);
  std::string line =
      fmt::format("[{}{}] {:5.1f}%  {}", std::string(filled, '='),
                  std::string(kBarWidth - filled, ' '), 100 * done,
                  status.phase() == v1::TRAINING ? FormatFigures(status, epochs_total)
                                                 : std::string(PhaseText(status.phase())));
  if (line.size() > columns) line.resize(columns);
  return line;
}

std::string FormatEvaluation(const v1::EvaluationStatus& evaluation) {
  return fmt::format("{} {}: test accuracy {:.2f}%, test loss {:.4f} ({} examples in {:.1f} s)",
                     evaluation.final() ? "final weights, epoch" : "epoch", evaluation.epoch(),
                     100 * evaluation.test_accuracy(), evaluation.test_loss(),
                     evaluation.examples(), evaluation.seconds());
}

}  // namespace slipstream
