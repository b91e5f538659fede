#ifndef SLIPSTREAM_COMMON_POLICY_LEARNING_RATE_H_
#define SLIPSTREAM_COMMON_POLICY_LEARNING_RATE_H_

#include <cstdint>

#include "common/settings/run_spec.h"

namespace slipstream {

/// The learning rate as a function of the examples applied so far, so that it does not depend on
/// how many updates they were combined into.
///
/// Thread-safe: const after construction.
class LearningRate {
 public:
  struct Extent {
    /// The number of examples of one epoch; 0 if it is not known, and the rate is then the base
    /// rate.
    uint64_t examples_per_epoch = 0;
    uint32_t epochs = 1;
  };

  LearningRate(double base, const ScheduleSpec& schedule, const Extent& extent)
      : base_(base), schedule_(schedule), extent_(extent) {}

  /// Returns the rate of the update that follows `examples_applied` examples.
  double At(uint64_t examples_applied) const;

 private:
  double ScheduledShare(double epoch) const;

  const double base_;
  const ScheduleSpec schedule_;
  const Extent extent_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_POLICY_LEARNING_RATE_H_
