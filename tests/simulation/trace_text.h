#ifndef SLIPSTREAM_TESTS_SIMULATION_TRACE_TEXT_H_
#define SLIPSTREAM_TESTS_SIMULATION_TRACE_TEXT_H_

#include <string>

#include "common/protocol/shard_messages.h"
#include "server/core/coordinator/coordinator.h"
#include "server/core/orders.h"
#include "server/core/shard/shard_machine.h"
#include "server/core/shard/shard_output.h"

namespace slipstream {

// Values of the protocol in a few words, for traces and transcripts.

/// "version 3 of generation 0 in stage 0, clock 3, computes 8+2": mini-batches 8 and 9.
std::string TextOf(const WeightsHeader& weights);

/// "7: training, stage 0 of 0, view 1 of 2, grant 1"
std::string TextOf(const ServerOrders& orders);

/// "TOO_STALE version 5 lag 4: staleness 4 exceeds the bound 3"
std::string TextOf(const PushReply& reply);

/// "rate 0.1, sum times 0.5, step times 1, drafted"
std::string TextOf(const Update& update);

/// "generation 0 version 1 of 2, round of 1 and 0 excused lacks worker 1, 1 waiting, 64 bytes":
/// version 1 is published, 2 decided.
std::string StateOf(const ShardMachine& machine);

/// "TRAINING, stage 0, 2 live, 3 of 8 batches done"
std::string StateOf(const Coordinator& coordinator);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_TRACE_TEXT_H_
