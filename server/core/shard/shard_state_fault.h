#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_STATE_FAULT_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_STATE_FAULT_H_

#include <string>

#include "server/core/shard/shard_machine_options.h"
#include "server/core/shard/shard_state.h"

namespace slipstream {

/// Names what does not fit in a state that was read from a file: its parts contradict each other,
/// or these options. Empty if a machine with the options can go on from it. Whatever else is wrong
/// with the state makes wrong decisions, and breaks no check of the machine.
std::string FaultOf(const ShardState& state, const ShardMachineOptions& options);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_STATE_FAULT_H_
