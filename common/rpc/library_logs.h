#ifndef SLIPSTREAM_COMMON_RPC_LIBRARY_LOGS_H_
#define SLIPSTREAM_COMMON_RPC_LIBRARY_LOGS_H_

namespace slipstream {

/// Sends the messages of gRPC and protobuf to the log, at debug and in its format: peers can make
/// protobuf write a line for each wrong text of theirs. To be called by a program's main, before
/// either is used.
void TakeLibraryLogs();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_LIBRARY_LOGS_H_
