#ifndef SLIPSTREAM_SERVER_CORE_RUN_STAGES_H_
#define SLIPSTREAM_SERVER_CORE_RUN_STAGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/limits.h"
#include "common/settings/consistency_spec.h"
#include "common/settings/run_change.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// A part of a run with one policy and one learning rate. A run is a sequence of stages: at first
/// those of its settings; an operator's changes add others while it trains.
struct RunStage {
  ConsistencySpec consistency;

  /// The rate of the rule that the servers follow, before the schedule. > 0.
  double learning_rate = RowOf(kDefaultRule).learning_rate;

  /// The stage is for the mini-batches of the epochs after the stage before, up to this one.
  uint32_t until_epoch = kEpochsMax;

  /// Set if the stage takes over in the midst of the stage before: each shard goes over between two
  /// versions, gradients on their way count, and work goes on. Otherwise it begins when the
  /// mini-batches before are part of the weights on every shard.
  bool begins_at_once = false;

  /// Returns the end of the stage in the run-long sequence of mini-batches, of which there are
  /// `total`.
  constexpr uint64_t BatchesEnd(uint64_t per_epoch, uint64_t total) const {
    return std::min(total, until_epoch * per_epoch);
  }

  friend bool operator==(const RunStage&, const RunStage&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.consistency, self.learning_rate, self.until_epoch, self.begins_at_once);
  }
};

/// The most stages of a run, with those that changes add.
inline constexpr size_t kRunStagesMax = 256;

/// Returns the stages of a run as its settings have them.
std::vector<RunStage> StagesOf(const RunSpec& run);

/// Returns the stages of a run that is in the stage `present`, with a change. A new policy is for
/// the rest of the run, and takes the place of the stages to come; a new rate is for the present
/// stage and for those. The change begins at once, or else when the epochs up to `until_epoch` are
/// done. Returns the same stages if they have policy and rate already. REQUIRES: present <
/// stages.size(); until_epoch is below the end of the last stage.
std::vector<RunStage> WithChange(const std::vector<RunStage>& stages, uint32_t present,
                                 const RunChange& change, bool begins_at_once,
                                 uint32_t until_epoch);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_RUN_STAGES_H_
