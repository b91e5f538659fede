#ifndef SLIPSTREAM_TESTS_SIMULATION_SCENARIO_LOSSES_H_
#define SLIPSTREAM_TESTS_SIMULATION_SCENARIO_LOSSES_H_

#include "tests/simulation/scenario.h"

namespace slipstream {

/// Draws whether the run waits for other workers in the places of lost ones, where workers are
/// waited for and push to the shards themselves.
void DrawWorkerLoss(Scenario& scenario);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SCENARIO_LOSSES_H_
