#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_UNITS_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_UNITS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/protocol/shard_messages.h"
#include "tests/simulation/coordinator_calls.h"
#include "worker/core/unit_queue.h"

namespace slipstream {

/// Asks the coordinator for units of work, one at a time and ahead of need, like UnitFetcher.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimUnits {
 public:
  /// As UnitFetcher::NextStage.
  struct NextStage {
    uint32_t number = 0;
    uint32_t since = 0;
  };

  /// As UnitFetcher::Returned.
  struct Returned {
    Life life{};
  };

  /// The coordinator's answer: a unit, the stage that the run is in, the life that shards in step
  /// have begun, or nothing if there are no more units.
  using Result = std::variant<std::monostate, WorkUnit, NextStage, Returned>;

  /// `progress` is the progress that a request reports. `on_result` is called when a result has
  /// come, or with the reason why none will. All arguments must outlive it.
  SimUnits(CoordinatorCalls& calls, const Identity& identity,
           const std::vector<UnitProgress>& progress,
           std::function<void(const absl::Status&)> on_result);

  /// Has no effect while a request is under way or its result has not been taken.
  void Ask(Life life);

  /// Returns the result of an earlier Ask() once, if it has come.
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
  uint32_t stage_ = 0;
  Life life_{};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_UNITS_H_
