#include "common/rpc/status_conversion.h"

#include <string>

namespace slipstream {
namespace {

constexpr int kCodeMax = static_cast<int>(absl::StatusCode::kUnauthenticated);

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // absl::Status::code() maps codes unknown to it to UNKNOWN.
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

absl::Status FromGrpc(const grpc::Status& status) {
  const int code = status.error_code();
  const bool known = code >= 0 && code <= kCodeMax;
  return {known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
          status.error_message()};
}

absl::Status NoCoordinatorAt(const std::string& address) {
  return absl::InvalidArgumentError(
      "no coordinator at " + address +
      ": it is with the first of cluster.servers, which --coordinator names");
}

}  // namespace slipstream
