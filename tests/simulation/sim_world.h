#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_WORLD_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_WORLD_H_

#include "deploy/lab/event_queue.h"
#include "tests/simulation/gradients.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/trace.h"

namespace slipstream {

/// The parts of the world that all worker processes of a run share. They outlive the processes.
struct SimWorld {
  const Scenario& scenario;
  EventQueue& queue;
  Network& network;
  History& history;
  Trace& trace;
  Gradients& gradients;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_WORLD_H_
