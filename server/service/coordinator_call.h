#ifndef SLIPSTREAM_SERVER_SERVICE_COORDINATOR_CALL_H_
#define SLIPSTREAM_SERVER_SERVICE_COORDINATOR_CALL_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace slipstream {

/// Someone who has asked the coordinator something.
class CoordinatorCall {
 public:
  virtual ~CoordinatorCall() = default;

  /// Once for each question.
  virtual void OnAnswer(const absl::Status& status) = 0;

  /// The service's, guarded by its mutex.
  std::optional<uint64_t> parked_as;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_COORDINATOR_CALL_H_
