#ifndef SLIPSTREAM_TESTS_SIMULATION_WEIGHING_H_
#define SLIPSTREAM_TESTS_SIMULATION_WEIGHING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/simulation/evidence.h"
#include "tests/simulation/scenario.h"

namespace slipstream {

/// Returns 0 if there are no values.
double MeanOf(const std::vector<double>& values);

/// The factors that the gradients of a shard's updates should have, from their staleness, the
/// policy and the compensation, by formulas of the simulator's own.
///
/// Not thread-safe: one owner, who names a shard's versions in order.
class Weighing {
 public:
  struct Factors {
    /// The learning rate of the update, and the factor of the step of a rule that normalises.
    double rate = 0;
    double scale = 1;

    /// By entry: its factor in the combined gradient.
    std::vector<double> shares;
  };

  explicit Weighing(const Scenario& scenario) : scenario_(scenario) {}

  /// `lags`: the staleness of each entry. `stage`: the run's when the version was made.
  Factors Take(uint32_t stage, const std::vector<Entry>& entries, const std::vector<double>& lags);

  /// The mean staleness of each version taken.
  const std::vector<double>& means() const { return means_; }

  /// The mean over the last versions, which divides the combined gradient where the run says so, or
  /// the step of a rule that normalises.
  double WindowMean() const;

 private:
  /// The part of the factor that follows from the gradient's own staleness.
  double ShareOf(double lag) const;

  const Scenario& scenario_;
  std::vector<double> means_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_WEIGHING_H_
