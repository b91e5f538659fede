#ifndef SLIPSTREAM_SERVER_STATUS_COORDINATOR_FACTS_H_
#define SLIPSTREAM_SERVER_STATUS_COORDINATOR_FACTS_H_

#include "absl/time/time.h"
#include "server/core/coordinator/coordinator.h"
#include "server/status/status_facts.h"

namespace slipstream {

/// Returns the facts that the coordinator itself knows. Its shell adds those of shards, aggregators
/// and readers, and what workers tell with their heartbeats.
StatusFacts FactsOf(const Coordinator& coordinator, absl::Time now);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_COORDINATOR_FACTS_H_
