#ifndef SLIPSTREAM_SERVER_CORE_SHARD_PUSH_TALLY_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_PUSH_TALLY_H_

#include <cstdint>
#include <map>

#include "common/policy/staleness_guard.h"
#include "common/protocol/shard_messages.h"
#include "server/core/shard/lag_tracker.h"

namespace slipstream {

/// How often the staleness guard engaged.
struct GuardCounts {
  uint64_t rejected = 0;
  uint64_t dropped = 0;
  uint64_t scaled = 0;
  uint64_t rounds_held_back = 0;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.rejected, self.dropped, self.scaled, self.rounds_held_back);
  }
};

/// The counts of a shard's pushes, for status and for the compensation of staleness.
struct PushTally {
  LagTracker lag;
  std::map<PushOutcome, uint64_t> outcomes;
  GuardCounts guard_counts;

  /// Counts a push that was refused.
  void CountRefusal(const PushReply& refusal, const StalenessGuard& guard) {
    ++outcomes[refusal.outcome];
    // The guard rejected the push only if it is beyond the bound; else the weights of its base are
    // gone.
    const bool is_beyond = guard.Judge(refusal.staleness) == StalenessGuard::Verdict::kRefuse;
    if (refusal.outcome == PushOutcome::kTooStale && is_beyond) ++guard_counts.rejected;
  }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.lag, self.outcomes, self.guard_counts);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_PUSH_TALLY_H_
