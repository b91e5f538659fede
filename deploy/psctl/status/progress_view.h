#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_PROGRESS_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_PROGRESS_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Returns "training", "waiting for workers", and so on.
std::string_view PhaseText(v1::Phase phase);

/// Returns why the run failed, by RunFailedError or DivergedError; OK if it has not.
absl::Status FailureOf(const v1::RunStatus& status);

/// Returns the share of the training that is done, in [0, 1]: of its mini-batches, or of
/// training.max_seconds where that is more. 0 while neither is known.
double DoneShare(const v1::RunStatus& status);

/// Returns the current epoch, from 1 (status.epochs counts those that are done), or 0 before
/// training.
uint32_t CurrentEpoch(const v1::RunStatus& status);

/// Returns the time until the last mini-batch at the pace so far, or until training.max_seconds are
/// over if that is sooner; nothing while neither is known, and unless the run trains.
std::optional<absl::Duration> TimeLeft(const v1::RunStatus& status);

/// Returns whether a worker has reported a step. Loss and training accuracy mean nothing before.
bool HasReports(const v1::RunStatus& status);

/// Returns the progress in one line of at most `columns` characters:
///   "training 43.1%  epoch 3/5  train loss 0.4321  train accuracy 86.2%  12345 examples/s
///   staleness 1.02  3m07s left".
/// Loss and accuracy are "-" before the first report. There is no accuracy if the loss has no
/// classes. Before the first update the line says so instead of a pace; while nobody pushes, it
/// says for how long. Figures that do not fit are left out in this order: training accuracy, loss,
/// epoch, staleness, pace, that nobody pushes, time left.
std::string FormatProgress(const v1::RunStatus& status,
                           size_t columns = std::numeric_limits<size_t>::max());

/// Returns the same line behind a bar. Where the line is short, the bar shrinks and goes first.
std::string FormatProgressBar(const v1::RunStatus& status, size_t columns);

/// Returns "epoch 3.02: test accuracy 87.35%, test loss 0.3551 at version 1406 (10000 examples in
/// 812 ms)", or "at versions 1405 to 1407" where shards differ. The accuracy is left out if there
/// is none. The epoch is that of the measured weights.
std::string FormatEvaluation(const v1::EvaluationStatus& evaluation);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_PROGRESS_VIEW_H_
