#ifndef SLIPSTREAM_SERVER_LISTEN_END_CALL_H_
#define SLIPSTREAM_SERVER_LISTEN_END_CALL_H_

#include <grpc/grpc.h>
#include <spdlog/common.h>

#include <string>

namespace slipstream {

/// Ends a call from aside, with UNAVAILABLE and the reason, which is logged with the peer at
/// `level`: that may be honest, and its next try be better. Runs the call's own callbacks, perhaps
/// here, so no lock may be held; `call` must be held by a reference of the caller.
void EndCall(grpc_call* call, const std::string& reason, spdlog::level::level_enum level);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_END_CALL_H_
