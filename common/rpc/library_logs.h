#ifndef SLIPSTREAM_COMMON_RPC_LIBRARY_LOGS_H_
#define SLIPSTREAM_COMMON_RPC_LIBRARY_LOGS_H_

namespace slipstream {

/// Sends the messages of gRPC and protobuf to the log, at level debug and in the log's format:
/// peers can make protobuf write a line for each malformed text that they send. Call it in main,
/// before either library is used.
void TakeLibraryLogs();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_LIBRARY_LOGS_H_
