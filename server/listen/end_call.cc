#include "server/listen/end_call.h"

#include <grpc/support/alloc.h>
#include <spdlog/spdlog.h>

#include "common/base/log_line.h"
#include "common/log/log.h"

namespace slipstream {

void EndCall(grpc_call* call, const std::string& reason, spdlog::level::level_enum level,
             grpc_status_code code) {
  char* const peer = grpc_call_get_peer(call);
  Log(level, LogLine("ended a call", {{"peer", peer}, {"reason", reason}}));
  gpr_free(peer);
  grpc_call_cancel_with_status(call, code, reason.c_str(), nullptr);
}

}  // namespace slipstream
