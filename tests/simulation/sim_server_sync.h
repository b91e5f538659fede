#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_SERVER_SYNC_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_SERVER_SYNC_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/coordinator_orders.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"

namespace slipstream {

class SimShard;

/// A shard's conversation with the coordinator in virtual time, like ServerSync: it sends the
/// shard's reports, and receives orders.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the event queue's
/// last event.
class SimServerSync {
 public:
  /// Makes its first call after `first_pause`.
  SimServerSync(ShardId shard, const Scenario& scenario, absl::Duration first_pause,
                EventQueue& queue, Network& network, SimShard& server);

  /// Returns true once the run is over and the coordinator has let this server go.
  bool may_exit() const { return orders_.may_exit; }

 private:
  void Sync();
  void OnSynced(const absl::StatusOr<std::string>& reply);
  absl::Duration NextWait() const;

  // Constant after construction.
  const ShardId shard_;
  const Scenario& scenario_;

  EventQueue& queue_;
  Network& network_;
  SimShard& server_;
  const std::shared_ptr<Process> process_ = std::make_shared<Process>();
  uint64_t calls_ = 0;
  ServerOrders orders_;
  absl::Duration pause_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_SERVER_SYNC_H_
