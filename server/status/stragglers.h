#ifndef SLIPSTREAM_SERVER_STATUS_STRAGGLERS_H_
#define SLIPSTREAM_SERVER_STATUS_STRAGGLERS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

/// The pace of one live worker (step_times.h): of each figure the least that any shard reports.
struct WorkerPace {
  WorkerId worker{};
  uint64_t steps = 0;
  absl::Duration step;

  /// How long the worker has had weights without pushing.
  absl::Duration holding;

  /// Set if the worker has work and is expected to push. A worker that waits for work also holds
  /// weights, but is not late.
  bool owes_gradient = true;
};

/// The rule by which a worker is called a straggler. The measure M is the median step time of the
/// live workers that have done kStepsMin steps. Of an even number it is the lower middle one, so
/// that one of two workers can be slow. With fewer than two such workers there is no measure and no
/// straggler. A worker is a straggler if it
///  - has done kStepsMin steps and its step time is above kSlowFactor · M, or
///  - owes a gradient and has held its weights for more than kSilentFactor · M and kSilenceMin.
inline constexpr uint64_t kStepsMin = 5;
inline constexpr double kSlowFactor = 2;
inline constexpr double kSilentFactor = 3;

/// Shards report four times a second, so a shorter silence may be due to the reporting alone.
inline constexpr absl::Duration kSilenceMin = absl::Seconds(1);

/// Returns the stragglers among all live workers of a run that trains, with the reason for people.
std::map<WorkerId, std::string> FindStragglers(std::span<const WorkerPace> workers);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_STRAGGLERS_H_
