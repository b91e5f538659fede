#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_HEARTBEAT_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_HEARTBEAT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/shard_messages.h"
#include "proto/coordinator.pb.h"
#include "tests/simulation/coordinator_calls.h"
#include "tests/simulation/network.h"
#include "tests/simulation/sim_world.h"
#include "worker/core/unit_queue.h"

namespace slipstream {

/// Tells the coordinator regularly, like Heartbeat, that the worker is alive and what it has done.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimHeartbeat {
 public:
  using OnReply = std::function<void(const absl::StatusOr<v1::HeartbeatReply>&)>;

  /// `on_reply` is called with every answer, and closes this object after the last one it needs.
  /// All arguments must outlive it.
  SimHeartbeat(const SimWorld& world, const std::shared_ptr<Process>& process,
               CoordinatorCalls& calls, const std::vector<UnitProgress>& progress,
               OnReply on_reply);

  void Start(const Identity& identity, absl::Duration lease);

  /// The worker has nothing left to do but to hear of the end, so it asks more often.
  void Hurry() { is_hurried_ = true; }
  bool is_hurried() const { return is_hurried_; }

  /// Returns whether no more work may be begun. Once true, it stays true.
  bool work_ends() const { return work_ends_; }

  /// Returns the number of mini-batches that the coordinator wants of the next pushes; 0 if it has
  /// named none.
  uint64_t steps() const { return steps_; }
  void Close() { is_closed_ = true; }

 private:
  void BeatLater();
  void Beat();

  const SimWorld world_;
  const std::shared_ptr<Process> process_;
  CoordinatorCalls& calls_;
  const std::vector<UnitProgress>& progress_;
  const OnReply on_reply_;
  Identity identity_;
  absl::Duration lease_;
  bool is_hurried_ = false;
  bool work_ends_ = false;
  uint64_t steps_ = 0;
  bool is_closed_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_HEARTBEAT_H_
