#ifndef SLIPSTREAM_SERVER_STORAGE_MEMORY_BUDGET_H_
#define SLIPSTREAM_SERVER_STORAGE_MEMORY_BUDGET_H_

#include <cstdint>
#include <string>

#include "common/run/run_spec.h"

namespace slipstream {

/// What a shard of so many values takes at its peak, in bytes: two versions of the weights, for
/// each of `gradients` under way either a push or a version that is read, the optimizer's state
/// twice, and a fixed part. Saturates.
uint64_t ShardBytesNeeded(uint64_t values, uint64_t gradients, const OptimizerSpec& optimizer);

/// What this process can still have without taking it from others, in bytes (memory_bytes.h).
uint64_t AvailableMemoryBytes();

/// Like "41.2 GiB".
std::string BytesText(uint64_t bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STORAGE_MEMORY_BUDGET_H_
