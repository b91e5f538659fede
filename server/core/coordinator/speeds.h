#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_SPEEDS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_SPEEDS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace slipstream {

/// Returns the number of local steps of a worker with this speed, so that it pushes about as often
/// as the fastest one, which takes `steps`: max(1, ⌊steps · speed / fastest⌋), the dynamic local
/// updates of Liu et al., arXiv 2401.09135. REQUIRES: steps > 0, 0 < speed ≤ fastest.
uint64_t StepsBySpeed(uint64_t steps, double speed, double fastest);

/// Keeps the speed of each live worker, as it reports it, and decides how many local steps each
/// takes between two pushes.
///
/// A speed moves towards each new report by kShareOfNew of the distance, so that one odd report
/// does not change the steps of all workers.
///
/// Not thread-safe: one owner, which serialises calls.
class WorkerSpeeds {
 public:
  static constexpr double kShareOfNew = 0.25;

  /// `steps`: H, those of the fastest worker. REQUIRES: steps > 0.
  explicit WorkerSpeeds(uint64_t steps);

  /// Takes a report of a live worker, in steps per second; 0 says that it has measured none yet.
  /// INVALID_ARGUMENT if the speed is no number in [0, kStepsPerSecondMax].
  absl::Status Report(WorkerId worker, double steps_per_second);

  /// Forgets the speed of a worker that is gone, so that nobody is compared with it any more.
  void Forget(WorkerId worker) { speeds_.erase(worker); }

  /// Returns the number of steps that the worker takes; nothing while its speed is not known.
  std::optional<uint64_t> StepsOf(WorkerId worker) const;

 private:
  // Constant after construction.
  const uint64_t steps_;

  // The speeds of the live workers that have reported one; each is above 0.
  std::map<WorkerId, double> speeds_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_SPEEDS_H_
