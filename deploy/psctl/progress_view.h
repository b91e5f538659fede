#ifndef SLIPSTREAM_DEPLOY_PSCTL_PROGRESS_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PROGRESS_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "proto/status.pb.h"

namespace slipstream {

/// "training", "waiting for workers", ….
std::string_view PhaseText(v1::Phase phase);

/// Returns the share of the training that is done, in [0, 1]: of its mini-batches, or of
/// training.max_seconds where that is more. 0 while neither is known.
double DoneShare(const v1::RunStatus& status);

/// The epoch being worked on, from 1 (status.epochs counts those that are done); 0 before training.
uint32_t CurrentEpoch(const v1::RunStatus& status);

/// Returns the time until the last mini-batch at the pace so far, or until training.max_seconds are
/// over if that is sooner; nothing while neither is known, and unless the run trains.
std::optional<absl::Duration> TimeLeft(const v1::RunStatus& status);

/// Whether a worker has reported a step: loss and training accuracy mean nothing before.
bool HasReports(const v1::RunStatus& status);

/// What is happening in one line of at most `columns` characters:
///   "training 43.1%  epoch 3/5  train loss 0.4321  train accuracy 86.2%  12345 examples/s
///   staleness 1.02  3m07s left".
/// Loss and accuracy are "-" before the first report; there is no accuracy where the loss knows no
/// classes. Before the first update it says so instead of a pace; while nobody pushes it says for
/// how long. Where there is no room, figures are left out: training accuracy first, then loss,
/// epoch, staleness, pace, that nobody pushes, and the time left.
std::string FormatProgress(const v1::RunStatus& status,
                           size_t columns = std::numeric_limits<size_t>::max());

/// The same behind a bar, which shrinks and goes first.
std::string FormatProgressBar(const v1::RunStatus& status, size_t columns);

/// "epoch 3.02: test accuracy 87.35%, test loss 0.3551 at version 1406 (10000 examples in 812 ms)",
/// or "at versions 1405 to 1407" where shards differ; without accuracy where there is none. The
/// epoch is that of the weights measured.
std::string FormatEvaluation(const v1::EvaluationStatus& evaluation);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PROGRESS_VIEW_H_
