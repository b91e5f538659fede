#ifndef SLIPSTREAM_COMMON_RPC_TRANSFER_TUNING_H_
#define SLIPSTREAM_COMMON_RPC_TRANSFER_TUNING_H_

namespace slipstream {

/// Changes settings that libraries keep for the whole process, so that transfers cost less.
///
/// malloc keeps freed memory. gRPC allocates a buffer for nearly every read; getting pages from the
/// kernel each time costs 2 to 29 % of the transfer rate (64 MB models, loopback). The price is
/// resident memory: the process keeps its peak, over all threads together.
///
/// Abseil does not record the order in which gRPC takes its locks. By default it does if it was
/// built with assertions, as Debian's is; that took 7 % of a coordinator's time.
///
/// Call it first in main, before any thread exists.
void TuneForTransfers();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_TRANSFER_TUNING_H_
