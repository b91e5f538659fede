#ifndef SLIPSTREAM_WORKER_MEMBER_MODEL_ASKING_H_
#define SLIPSTREAM_WORKER_MEMBER_MODEL_ASKING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "proto/coordinator.pb.h"
#include "worker/core/unit_queue.h"

namespace slipstream {

/// The model that this worker trains; it must be the same for all workers of a run.
struct ModelProposal {
  TensorLayout layout;
  uint64_t examples = 0;
  uint64_t data_fingerprint = 0;

  /// Parts of the model that nobody trains: their names, and digests of their values.
  std::vector<std::pair<std::string, uint64_t>> frozen = {};

  /// Whether this worker can save weights that it measures, and if it cannot, why; empty if it was
  /// told no place. Absent if it cannot tell.
  std::optional<bool> can_save = {};
  std::string saving_failure = {};
};

struct PreparedModel {
  ShardMap map;

  /// Not 0: the initial weights are to be sent to all shards under this grant. 0: the model is
  /// ready to be pulled.
  uint64_t grant = 0;
};

/// Asks the coordinator for the model until it is ready: the requests, and what the answers mean.
///
///     ask with Request() until OnReply(reply) returns a model; while that has a grant:
///       … send the initial weights, then call FinishInitialization(Finish()) …
///       … OnInitialized(what became of both), and ask on …
///
/// If a server is started again meanwhile, the grant ends, and this worker or another is given a
/// new one.
///
/// Not thread-safe: one owner.
class ModelAsking {
 public:
  /// How long a request waits for the model. It is short, because a waiting call delays a program
  /// that is told to stop.
  static constexpr uint32_t kWaitMilliseconds = 500;

  ModelAsking(const Identity& identity, const ModelProposal& proposal);

  /// The first request proposes the model. The coordinator knows it from the first answer on.
  const v1::PrepareModelRequest& Request() const { return request_; }

  /// Returns the model once it is ready, or this worker is to initialise it; nothing if the
  /// coordinator is to be asked again. INTERNAL if the answer makes no sense.
  absl::StatusOr<std::optional<PreparedModel>> OnReply(const v1::PrepareModelReply& reply);

  v1::FinishInitializationRequest Finish() const;

  /// Notes what became of the initialization. Returns OK if the coordinator is to be asked again:
  /// it knows best, refuses a worker that is fenced, and gives others a new grant.
  absl::Status OnInitialized(const absl::Status& status);

 private:
  const TensorLayout layout_;
  v1::PrepareModelRequest request_;
  uint64_t grant_ = 0;
  uint64_t withdrawn_ = 0;  // The last grant that ended before the initialization did.
};

/// Returns the request by which a member leaves. `failure`: why it cannot go on, for people; empty
/// if it can. `ends_run`: no other worker could go on either. `progress`: what was pushed since the
/// last heartbeat, and would otherwise be handed out again.
v1::LeaveRequest LeaveRequestOf(const Identity& identity, const std::string& failure, bool ends_run,
                                const std::vector<UnitProgress>& progress);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_MEMBER_MODEL_ASKING_H_
