#ifndef SLIPSTREAM_WORKER_TRAINING_WORK_SOURCE_H_
#define SLIPSTREAM_WORKER_TRAINING_WORK_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/client/gradient_client.h"
#include "worker/core/work_turns.h"
#include "worker/training/step_figures.h"
#include "worker/training/unit_fetcher.h"

namespace slipstream {

/// Keeps a client in work: fetches units for it, leads it from one of the run's policies to the
/// next, and knows when nothing is left. It passes the client's progress on to the figures, by
/// which the heartbeat reports it.
///
/// Not thread-safe: one owner, the client's.
class WorkSource {
 public:
  /// `slots`: the client's. All other arguments must outlive this object.
  WorkSource(uint32_t slots, GradientClient& client, UnitFetcher& units, StepFigures& figures);

  /// Heeds the client's answer Finished for a slot. Returns whether no slot has work left in this
  /// run. If the others have none in this stage, it waits for the next stage, or for the end of
  /// work.
  absl::StatusOr<bool> HeedFinished(uint32_t slot);

  /// Heeds the client's answer AwaitUnit: waits for a unit, for the next stage, or for the end of
  /// work. Waits for all pushes first.
  absl::Status AwaitUnit();

  /// Asks for a unit if the client will soon need one, and takes one that has arrived.
  absl::Status Prefetch();

  /// Waits until everything that the client began is done, and reports that no push follows.
  absl::Status Drain();

  /// Passes the results of the client's lanes on to the figures.
  void TellFigures();

 private:
  absl::Status Heed(const UnitFetcher::Result& news);

  // Constant after construction.
  GradientClient& client_;
  UnitFetcher& units_;
  StepFigures& figures_;

  WorkTurns turns_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_WORK_SOURCE_H_
