#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_UNITS_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_UNITS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/protocol/shard_messages.h"
#include "tests/simulation/coordinator_calls.h"
#include "worker/core/unit_queue.h"

namespace slipstream {

/// Asks the coordinator for units of work, one at a time and ahead of need, as UnitFetcher does.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimUnits {
 public:
  /// What the coordinator said: a unit, or nothing if there will be no more.
  using Result = std::optional<WorkUnit>;

  /// `progress`: what a request tells of the units so far. `on_result` is told when a result has
  /// come, or why none will. All arguments must outlive it.
  SimUnits(CoordinatorCalls& calls, const Identity& identity,
           const std::vector<UnitProgress>& progress,
           std::function<void(const absl::Status&)> on_result);

  /// Without effect while an answer is under way or not yet taken.
  void Ask();

  /// The result of an earlier Ask(), once, if it is there.
  std::optional<Result> Take();

  bool is_asking() const { return is_asking_; }

 private:
  void Fetch();

  CoordinatorCalls& calls_;
  const Identity identity_;
  const std::vector<UnitProgress>& progress_;
  const std::function<void(const absl::Status&)> on_result_;
  bool is_asking_ = false;
  std::optional<Result> result_;
  uint64_t newest_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_UNITS_H_
