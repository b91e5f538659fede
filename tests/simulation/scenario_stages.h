#ifndef SLIPSTREAM_TESTS_SIMULATION_SCENARIO_STAGES_H_
#define SLIPSTREAM_TESTS_SIMULATION_SCENARIO_STAGES_H_

#include "absl/time/time.h"
#include "tests/simulation/scenario.h"

namespace slipstream {

/// Draws policies for the first epochs: those with rounds come first, and need a pipeline of one.
void DrawStages(Scenario& scenario);

/// Draws what an operator changes while the run trains, within the time `longest`; nothing where
/// each update has to have one gradient.
void DrawChanges(Scenario& scenario, absl::Duration longest);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SCENARIO_STAGES_H_
