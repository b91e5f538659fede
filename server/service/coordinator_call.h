#ifndef SLIPSTREAM_SERVER_SERVICE_COORDINATOR_CALL_H_
#define SLIPSTREAM_SERVER_SERVICE_COORDINATOR_CALL_H_

#include <cstdint>
#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "server/listen/caller.h"

namespace slipstream {

/// The member that a call says it is for: a worker, the server of a shard, or nobody yet.
using ClaimedMember = std::variant<std::monostate, WorkerId, ShardId>;

/// Someone who asks the coordinator something.
class CoordinatorCall {
 public:
  virtual ~CoordinatorCall() = default;

  virtual Caller& caller() = 0;

  /// Once for each question.
  virtual void OnAnswer(const absl::Status& status) = 0;

  /// The service's, guarded by its mutex.
  std::optional<uint64_t> parked_as;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_COORDINATOR_CALL_H_
