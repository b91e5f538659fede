#ifndef SLIPSTREAM_SERVER_CORE_SHARD_OPTIONS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_OPTIONS_H_

#include "common/base/ids.h"
#include "common/run/run_spec.h"
#include "server/core/shard_machine.h"

namespace slipstream {

/// What the run asks of the core of one of its shards. The one place that says so: a simulated
/// shard with other settings than a real one would show nothing about it.
ShardMachine::Options ShardOptionsOf(const RunSpec& run, ShardId shard);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_OPTIONS_H_
