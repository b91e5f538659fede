#ifndef SLIPSTREAM_COMMON_RPC_TRANSFER_ALLOCATOR_H_
#define SLIPSTREAM_COMMON_RPC_TRANSFER_ALLOCATOR_H_

namespace slipstream {

/// Makes malloc keep what is freed. gRPC allocates a buffer for nearly every read; getting pages
/// from the kernel each time costs 2 to 29 % of the transfer rate (64 MB models, loopback). The
/// price is resident memory: the process keeps its peak, of all threads together.
///
/// To be called first in main, before any thread exists.
void TuneAllocatorForTransfers();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RPC_TRANSFER_ALLOCATOR_H_
