#ifndef SLIPSTREAM_TESTS_SIMULATION_SIMULATION_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace slipstream {

struct Simulated {
  uint64_t seed = 0;

  /// The violations found; empty if every promise held.
  std::vector<std::string> findings;

  /// Equal for equal runs.
  uint64_t digest = 0;
  uint64_t steps = 0;
  absl::Duration time;
};

/// Draws and runs one cluster and checks all promises. Writes its settings and its events to
/// `trace`, unless that is null. If a check within the cores ends the process meanwhile, it first
/// prints the command that repeats the run.
Simulated Simulate(uint64_t seed, std::ostream* trace = nullptr);

/// Returns the findings and the command that repeats them.
std::string Report(const Simulated& simulated);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIMULATION_H_
