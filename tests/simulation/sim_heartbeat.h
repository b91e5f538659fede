#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_HEARTBEAT_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_HEARTBEAT_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/protocol/shard_messages.h"
#include "proto/coordinator.pb.h"
#include "tests/simulation/coordinator_calls.h"
#include "tests/simulation/network.h"
#include "tests/simulation/sim_world.h"
#include "worker/core/unit_queue.h"
#include "worker/member/heartbeat_news.h"

namespace slipstream {

/// Tells the coordinator regularly that the worker is alive and what it has done, and keeps the
/// news.
///
/// Not thread-safe: one owner. It must outlive the event queue's last event.
class SimHeartbeat {
 public:
  /// `on_news` is called after every answer, and closes this object after the last one it needs.
  /// `on_failure` is called if the coordinator does not want this worker, or is given up. All
  /// arguments must outlive it.
  SimHeartbeat(const SimWorld& world, const std::shared_ptr<Process>& process,
               CoordinatorCalls& calls, const std::vector<UnitProgress>& progress,
               std::function<void()> on_news, std::function<void(const absl::Status&)> on_failure);

  void Start(const Identity& identity, absl::Duration lease);

  /// The worker has nothing left to do but to hear of the end, so it asks more often.
  void Hurry() { is_hurried_ = true; }
  bool is_hurried() const { return is_hurried_; }

  const HeartbeatNews& news() const { return news_; }
  void Close() { is_closed_ = true; }

 private:
  void BeatLater();
  void Beat();

  const SimWorld world_;
  const std::shared_ptr<Process> process_;
  CoordinatorCalls& calls_;
  const std::vector<UnitProgress>& progress_;
  const std::function<void()> on_news_;
  const std::function<void(const absl::Status&)> on_failure_;
  Identity identity_;
  absl::Duration lease_;
  bool is_hurried_ = false;
  HeartbeatNews news_;
  bool is_closed_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_HEARTBEAT_H_
