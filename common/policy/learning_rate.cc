#include "common/policy/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace slipstream {

double LearningRate::At(uint64_t examples_applied) const {
  if (extent_.examples_per_epoch == 0) return base_;
  const double epoch =
      static_cast<double>(examples_applied) / static_cast<double>(extent_.examples_per_epoch);
  if (epoch < schedule_.warmup_epochs) return base_ * epoch / schedule_.warmup_epochs;
  return base_ * ScheduledShare(epoch);
}

double LearningRate::ScheduledShare(double epoch) const {
  switch (schedule_.kind) {
    case ScheduleSpec::Kind::kConstant:
      return 1.0;
    case ScheduleSpec::Kind::kStep: {
      const auto passed = std::count_if(schedule_.at_epochs.begin(), schedule_.at_epochs.end(),
                                        [epoch](double at) { return epoch >= at; });
      return std::pow(schedule_.factor, static_cast<double>(passed));
    }
    case ScheduleSpec::Kind::kCosine: {
      // Falls from 1 at the end of the warm-up to `final_share` at the end of the run (1608.03983).
      const double length = std::max(1e-9, extent_.epochs - schedule_.warmup_epochs);
      const double progress = std::clamp((epoch - schedule_.warmup_epochs) / length, 0.0, 1.0);
      return schedule_.final_share +
             (1.0 - schedule_.final_share) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    }
  }
  return 1.0;
}

}  // namespace slipstream
