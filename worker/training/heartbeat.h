#ifndef SLIPSTREAM_WORKER_TRAINING_HEARTBEAT_H_
#define SLIPSTREAM_WORKER_TRAINING_HEARTBEAT_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/coordinator_stream.h"
#include "worker/client/gradient_client.h"
#include "worker/client/server_addresses.h"
#include "worker/member/heartbeat_news.h"
#include "worker/training/interruption.h"
#include "worker/training/step_figures.h"

namespace slipstream {

/// Renews a worker's lease on its own thread, reports the worker's figures to the coordinator, and
/// keeps the coordinator's answers: the run's phase, evaluations that this worker should make, and
/// where servers are now.
///
/// Interrupts the worker if the coordinator fences it or cannot be reached.
///
/// Thread-safe: guarded by its own mutex.
class Heartbeat {
 public:
  using Order = HeartbeatNews::Order;

  /// Starts at once. worker/core/heartbeat_times.h says which interval to use. `tells_speed`:
  /// whether the coordinator decides by the worker's speed how many steps it takes. All other
  /// arguments must outlive the heartbeat.
  Heartbeat(const CoordinatorClient& coordinator, const Identity& identity, absl::Duration interval,
            const StepFigures& figures, ServerAddresses& servers, Interruption& interruption,
            bool tells_speed = false);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  /// Waits for the end of the run, with more frequent heartbeats than before. Fails with CANCELLED
  /// if this worker is interrupted, which also happens if the run fails.
  absl::Status AwaitEnd();

  /// Waits as AwaitEnd does, or until there is an evaluation whose number is above `newer_than`.
  /// Returns whether the run has ended.
  absl::StatusOr<bool> AwaitEndOrOrder(uint64_t newer_than);

  /// Returns what the coordinator has asked of the workers so far.
  GradientClient::Orders orders() const;

  /// Asks the coordinator to end training, and waits until it has heard that. Fails with CANCELLED
  /// if this worker is interrupted.
  absl::Status EndTraining();

  /// Waits for an evaluation whose number is above `newer_than`; returns nothing once Close was
  /// called.
  std::optional<Order> AwaitOrder(uint64_t newer_than);

  /// Returns whether there is an evaluation whose number is above `newer_than`.
  bool HasOrder(uint64_t newer_than) const;

  /// Notes how many examples have been measured for an evaluation; the next heartbeats report it.
  void OnMeasured(uint64_t evaluation, uint64_t examples);

  /// Ends the thread and every AwaitOrder.
  void Close();

 private:
  void Run();
  absl::Status Beat();
  absl::StatusOr<std::optional<v1::HeartbeatReply>> Tell(v1::HeartbeatRequest& request);
  void Note(const v1::HeartbeatReply& reply);
  bool Pause();

  /// Waits until the condition holds, or there is an interruption (CANCELLED).
  template <typename Condition>
  absl::Status AwaitUntil(Condition condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const Identity identity_;
  const absl::Duration interval_;
  const StepFigures& figures_;
  ServerAddresses& servers_;
  Interruption& interruption_;
  const bool tells_speed_;

  // Owned by the thread:
  HeartbeatStream stream_;
  std::chrono::steady_clock::time_point answer_due_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_hurried_ ABSL_GUARDED_BY(mutex_) = false;
  HeartbeatNews news_ ABSL_GUARDED_BY(mutex_);
  bool ends_training_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_told_of_end_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t evaluation_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t measured_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_HEARTBEAT_H_
