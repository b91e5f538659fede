#ifndef SLIPSTREAM_SERVER_LISTEN_END_CALL_H_
#define SLIPSTREAM_SERVER_LISTEN_END_CALL_H_

#include <grpc/grpc.h>
#include <spdlog/common.h>

#include <string>

namespace slipstream {

/// Ends a call from outside its callbacks, by default with UNAVAILABLE, because the peer may be
/// honest and its next try may succeed. Logs the reason, with the peer, at `level`. Runs the call's
/// own callbacks, perhaps on this thread, so no lock may be held. The caller must hold a reference
/// to `call`.
void EndCall(grpc_call* call, const std::string& reason, spdlog::level::level_enum level,
             grpc_status_code code = GRPC_STATUS_UNAVAILABLE);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_END_CALL_H_
