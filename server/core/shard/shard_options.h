#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_OPTIONS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_OPTIONS_H_

#include "common/base/ids.h"
#include "common/settings/run_spec.h"
#include "server/core/shard/shard_machine.h"

namespace slipstream {

/// Returns the options of the machine of one shard. No other code derives them from a run: a
/// simulated shard with other settings than a real one would show nothing about it.
ShardMachine::Options ShardOptionsOf(const RunSpec& run, ShardId shard);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_OPTIONS_H_
