#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_UNITS_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_UNITS_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/protocol/shard_messages.h"
#include "tests/simulation/coordinator_calls.h"
#include "tests/simulation/sim_world.h"
#include "worker/core/unit_queue.h"
#include "worker/core/work_news.h"
#include "worker/member/work_asking.h"

namespace slipstream {

/// Asks the coordinator for units of work, one at a time and ahead of need, as WorkAsking says.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimUnits {
 public:
  /// `progress` is the progress that a request reports. `on_result` is called when a result has
  /// come, or with the reason why none will. All arguments must outlive it.
  SimUnits(const SimWorld& world, CoordinatorCalls& calls, const Identity& identity,
           const std::vector<UnitProgress>& progress,
           std::function<void(const absl::Status&)> on_result);

  /// Has no effect while a request is under way or its result has not been taken.
  void Ask(const WorkWish& wish);

  /// Returns the result of an earlier Ask() once, if it has come.
  std::optional<WorkNews> Take();

  bool is_asking() const { return is_asking_; }

 private:
  void Fetch();

  CoordinatorCalls& calls_;
  const std::vector<UnitProgress>& progress_;
  const std::function<void(const absl::Status&)> on_result_;
  WorkAsking asking_;
  bool is_asking_ = false;
  std::optional<WorkNews> result_;
  WorkWish wish_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_UNITS_H_
