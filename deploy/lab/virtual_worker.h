#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_WORKER_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "deploy/lab/lab_context.h"
#include "deploy/lab/virtual_process.h"
#include "deploy/lab/virtual_training.h"
#include "proto/coordinator.pb.h"
#include "server/core/coordinator/initialization.h"

namespace slipstream {

/// A worker's process in virtual time: joins the run, brings the initial weights if they are
/// granted to it, trains, and reports.
///
/// Not thread-safe: one owner, the thread of the event queue.
class VirtualWorker {
 public:
  /// `number` tells the processes of a run apart. `initial`: makes the initial weights. All
  /// arguments must outlive the object.
  VirtualWorker(const LabContext& lab, WorkerId worker, uint64_t number,
                const std::function<absl::Status(std::span<float>)>& initial);

  /// Registers with the coordinator.
  void Start();

  /// The process is lost: nobody is told.
  void Die();

  bool is_there() const { return !is_over_; }
  const Identity& identity() const { return identity_; }

  /// Asks the coordinator again what it had no answer to.
  void OnCoordinatorChanged();

  /// Tells the coordinator that the worker is there, and what it has done; and hears what a
  /// heartbeat's answer says.
  void Beat();

  /// Returns the heartbeat that has its figures, for status.
  v1::HeartbeatRequest Describe() const;

 private:
  /// Returns the heartbeat that has only its progress.
  v1::HeartbeatRequest Progress() const;
  void AskForModel();
  void OnPrepared(const Preparation& prepared);
  void Initialize(const Preparation& granted);
  void OnEnd(const absl::Status& status, bool ends_run);

  const LabContext& lab_;
  const WorkerId worker_;
  const uint64_t number_;
  const std::function<absl::Status(std::span<float>)>& initial_;
  VirtualProcess process_;
  Identity identity_;
  bool has_named_model_ = false;
  bool asks_for_model_ = false;
  bool is_done_ = false;  // It pushes nothing more.
  bool is_over_ = false;  // It has left, or is lost.
  std::optional<VirtualTraining> training_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_WORKER_H_
