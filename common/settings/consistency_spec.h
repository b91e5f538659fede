#ifndef SLIPSTREAM_COMMON_SETTINGS_CONSISTENCY_SPEC_H_
#define SLIPSTREAM_COMMON_SETTINGS_CONSISTENCY_SPEC_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/settings/policy_rows.h"

namespace slipstream {

/// Bounds the staleness σ of every gradient.
struct StalenessGuardSpec {
  /// The treatment of a gradient beyond the bound: reject refuses it by name and its worker
  /// computes anew, drop acknowledges it without effect, scale multiplies it by bound/σ. block
  /// holds rounds back, so that no gradient gets there.
  enum class Action { kNone, kReject, kBlock, kScale, kDrop };
  Action action = Action::kNone;

  /// The largest σ. At least 1 for scale.
  uint64_t bound = 0;

  friend bool operator==(const StalenessGuardSpec&, const StalenessGuardSpec&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.action, self.bound);
  }
};

struct ConsistencySpec {
  using Policy = PolicyKind;
  Policy policy = kDefaultPolicy;
  PolicyParameters parameters;
  StalenessGuardSpec max_staleness;

  /// The traits of the policy with the staleness guard around it.
  constexpr PolicyTraits traits() const {
    PolicyTraits traits = RowOf(policy).traits;
    traits.waits_for_members |= max_staleness.action == StalenessGuardSpec::Action::kBlock;
    return traits;
  }

  /// Returns c, the number of gradients that one update combines for `members` members. At least 1.
  constexpr uint32_t round_size(uint32_t members) const {
    const PolicyRow& row = RowOf(policy);
    const uint32_t size = row.round_size == nullptr ? members : row.round_size(parameters, members);
    return size > 0 ? size : 1;
  }

  friend bool operator==(const ConsistencySpec&, const ConsistencySpec&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.policy, self.parameters, self.max_staleness);
  }
};

/// A policy, and the epochs of the run that it is for: those after the stage before, up to
/// `until_epoch`. Stages change when the work of these epochs is part of the weights.
struct PolicyStage {
  ConsistencySpec consistency;
  uint32_t until_epoch = 1;

  friend bool operator==(const PolicyStage&, const PolicyStage&) = default;
};

/// The most policies of one run.
inline constexpr size_t kPolicyStagesMax = 16;

/// Returns the action's name in run.yaml.
constexpr std::string_view ActionName(StalenessGuardSpec::Action action) {
  switch (action) {
    case StalenessGuardSpec::Action::kNone:
      return "none";
    case StalenessGuardSpec::Action::kReject:
      return "reject";
    case StalenessGuardSpec::Action::kBlock:
      return "block";
    case StalenessGuardSpec::Action::kScale:
      return "scale";
    case StalenessGuardSpec::Action::kDrop:
      return "drop";
  }
  return "unknown";
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_CONSISTENCY_SPEC_H_
