#ifndef SLIPSTREAM_DEPLOY_PSCTL_PROGRESS_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PROGRESS_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proto/status.pb.h"

namespace slipstream {

/// "training", "waiting for workers", ….
std::string_view PhaseText(v1::Phase phase);

/// Share of the run's mini-batches that are done, in [0, 1]; 0 while their number is unknown.
double DoneShare(const v1::RunStatus& status);

/// The epoch being worked on, from 1 (status.epochs counts those that are done); 0 before training.
uint32_t CurrentEpoch(const v1::RunStatus& status);

/// Seconds until the last mini-batch at the pace so far; nothing while there is none.
std::optional<double> SecondsLeft(const v1::RunStatus& status);

/// "9s", "3m07s", "2h05m".
std::string FormatSeconds(double seconds);

/// Whether a worker has reported a step: loss and training accuracy mean nothing before.
bool HasReports(const v1::RunStatus& status);

/// What is happening in one line, for a log; `epochs_total` is shown where it is known (not 0):
///   "training 43.1%  epoch 3/5  loss 0.4321  accuracy 86.2%  12345 examples/s  staleness 1.02
///   3m07s left". Loss and accuracy are "-" before the first report; there is no
///   accuracy where the loss knows no classes.
std::string FormatProgress(const v1::RunStatus& status, uint32_t epochs_total = 0);

/// The same behind a bar, in at most `columns` characters. What does not fit is left out: the bar
/// shrinks and goes first, then accuracy, loss, epoch, staleness, pace and the time left.
std::string FormatProgressBar(const v1::RunStatus& status, uint32_t epochs_total, size_t columns);

/// "epoch 3: test accuracy 87.35%, test loss 0.3551 at version 1406 (10000 examples in 0.8 s)", or
/// "at versions 1405 to 1407" where shards differ; without accuracy where there is none.
std::string FormatEvaluation(const v1::EvaluationStatus& evaluation);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PROGRESS_VIEW_H_
