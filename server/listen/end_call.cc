#include "server/listen/end_call.h"

#include <grpc/support/alloc.h>
#include <spdlog/spdlog.h>

namespace slipstream {

void EndCall(grpc_call* call, const std::string& reason, spdlog::level::level_enum level) {
  char* const peer = grpc_call_get_peer(call);
  spdlog::log(level, "ended a call peer={} reason=\"{}\"", peer, reason);
  gpr_free(peer);
  grpc_call_cancel_with_status(call, GRPC_STATUS_UNAVAILABLE, reason.c_str(), nullptr);
}

}  // namespace slipstream
