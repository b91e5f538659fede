#ifndef SLIPSTREAM_COMMON_RPC_GRPC_LOG_H_
#define SLIPSTREAM_COMMON_RPC_GRPC_LOG_H_

namespace slipstream {

/// What gRPC says of itself goes to the log, in its format, for those who look for it: at debug. To
/// be called by a program's main, before gRPC is used.
void TakeLogOfGrpc();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_GRPC_LOG_H_
