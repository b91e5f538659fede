#ifndef SLIPSTREAM_COMMON_POLICY_STALENESS_GUARD_H_
#define SLIPSTREAM_COMMON_POLICY_STALENESS_GUARD_H_

#include <cstdint>

#include "common/settings/run_spec.h"

namespace slipstream {

/// Decides about gradients whose staleness σ would exceed a bound s.
///
/// Stateless: equal facts give equal decisions. Thread-safe: const after construction.
class StalenessGuard {
 public:
  using Action = StalenessGuardSpec::Action;

  explicit StalenessGuard(const StalenessGuardSpec& spec) : spec_(spec) {}

  enum class Verdict {
    kTake,
    kRefuse,  // Refused by name; the worker pulls again and computes from newer weights.
    kDrop,    // Acknowledged, without effect.
  };

  /// Returns what becomes of a gradient. `block` refuses, too: rounds wait for every gradient that
  /// they know to be on its way, so it refuses only gradients of a worker that changed its mind.
  Verdict Judge(uint64_t staleness) const {
    if (staleness <= spec_.bound) return Verdict::kTake;
    switch (spec_.action) {
      case Action::kReject:
      case Action::kBlock:
        return Verdict::kRefuse;
      case Action::kDrop:
        return Verdict::kDrop;
      case Action::kNone:
      case Action::kScale:
        break;
    }
    return Verdict::kTake;
  }

  /// Returns the factor of a gradient: s/σ beyond the bound, else 1.
  double Scale(uint64_t staleness) const {
    if (spec_.action != Action::kScale || staleness <= spec_.bound) return 1.0;
    return static_cast<double>(spec_.bound) / static_cast<double>(staleness);
  }

  /// Returns whether rounds wait for gradients that are on their way.
  bool blocks() const { return spec_.action == Action::kBlock; }

  /// Returns whether a round must not close because a gradient of `base` is on its way: that
  /// gradient could join the next round at the earliest, with staleness decided + 1 − base.
  bool HoldsBack(uint64_t base, uint64_t decided) const {
    return blocks() && decided + 1 > base + spec_.bound;
  }

  const StalenessGuardSpec& spec() const { return spec_; }

 private:
  const StalenessGuardSpec spec_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_POLICY_STALENESS_GUARD_H_
