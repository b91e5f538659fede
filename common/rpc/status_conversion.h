#ifndef SLIPSTREAM_COMMON_RPC_STATUS_CONVERSION_H_
#define SLIPSTREAM_COMMON_RPC_STATUS_CONVERSION_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace slipstream {

/// Convert to the other library's type with the same code and message. Both use the canonical
/// codes; a code that a peer made up becomes UNKNOWN.
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

/// Returns the error for a caller of the coordinator at `address` whose call was UNIMPLEMENTED
/// there: INVALID_ARGUMENT, with where the coordinator is.
absl::Status NoCoordinatorAt(const std::string& address);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_STATUS_CONVERSION_H_
