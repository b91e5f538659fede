#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_CALL_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_CALL_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/listen/caller.h"

namespace slipstream {

/// The member that a call says it is for: a worker, the server of a shard, or nobody yet.
using ClaimedMember = std::variant<std::monostate, WorkerId, ShardId>;

/// A call that asks the coordinator a question.
class CoordinatorCall {
 public:
  virtual ~CoordinatorCall() = default;

  virtual Caller& caller() = 0;

  /// Answers a question; called once for each.
  virtual void OnAnswer(const absl::Status& status) = 0;

  /// The key under which the service has parked the call; guarded by the service's mutex.
  std::optional<uint64_t> parked_as;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_CALL_H_
