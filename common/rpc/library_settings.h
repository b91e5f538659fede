#ifndef SLIPSTREAM_COMMON_RPC_LIBRARY_SETTINGS_H_
#define SLIPSTREAM_COMMON_RPC_LIBRARY_SETTINGS_H_

namespace slipstream {

/// Sends the messages of gRPC and protobuf to the log, at level debug and in the log's format:
/// peers can make protobuf write a line for each malformed text that they send. Call it in main,
/// before either library is used.
void TakeLibraryLogs();

/// Stops Abseil from recording the order in which gRPC takes its locks. By default it does if it
/// was built with assertions, as Debian's is; that took 7 % of a coordinator's time.
void TuneLocks();

/// Lets malloc keep as much freed memory as it does in any process that once freed a block of
/// 32 MiB: for processes whose settings are not ours, such as a Python program. Whoever has set
/// malloc's thresholds (MALLOC_TRIM_THRESHOLD_ and its like) keeps theirs. Exchanging 64 MiB over
/// TCP touched 3,300 to 8,000 new pages before, and 500 after. Any thread may call it.
void KeepFreedMemory();

/// Has gRPC look up names as the system does, by getaddrinfo, unless the variable GRPC_DNS_RESOLVER
/// says otherwise. gRPC's own resolver asks DNS servers even about names that stand in /etc/hosts,
/// and waits for those that are silent. Call it before gRPC is used and before other threads exist.
void UseSystemResolver();

/// Changes settings that libraries keep for the whole process, so that transfers cost less;
/// TuneLocks is among them.
///
/// malloc keeps freed memory. gRPC allocates a buffer for nearly every read; getting pages from the
/// kernel each time costs 2 to 29 % of the transfer rate (64 MB models, loopback). The price is
/// resident memory: the process keeps its peak, over all threads together.
///
/// Call it first in main, before any thread exists.
void TuneForTransfers();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_LIBRARY_SETTINGS_H_
