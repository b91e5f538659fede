#ifndef SLIPSTREAM_TESTS_SIMULATION_SCENARIO_RESTARTS_H_
#define SLIPSTREAM_TESTS_SIMULATION_SCENARIO_RESTARTS_H_

#include "tests/simulation/scenario.h"

namespace slipstream {

/// Draws whether shards save checkpoints and keep logs, which servers are killed and come back, and
/// what happens to their disks. REQUIRES: all else has been drawn.
void DrawRestarts(Scenario& scenario);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SCENARIO_RESTARTS_H_
