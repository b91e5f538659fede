#ifndef SLIPSTREAM_SERVER_STATUS_ROUND_OUTLOOK_H_
#define SLIPSTREAM_SERVER_STATUS_ROUND_OUTLOOK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

/// The facts about an open round that waits.
struct OpenRoundFacts {
  /// A worker without which the round cannot close: it owes the round a gradient, or the staleness
  /// of its gradient on the way would come to exceed the guard's bound. `awaited` is empty if there
  /// is no such worker.
  struct Awaited {
    WorkerId worker{};
    bool is_live = true;
    absl::Duration lease_left;

    /// Set if it lives and has been idle for too long: for how long.
    std::optional<absl::Duration> stalled_for;
  };
  std::vector<Awaited> awaited;
  bool is_held_back_by_guard = false;

  /// How many gradients the round still lacks, from any worker.
  uint32_t gradients_missing = 0;
  uint32_t live_workers = 0;
};

/// Describes what will happen to the round, and when, without a full stop at the end: "closes when
/// worker 3 pushes; without a word from worker 3 its lease ends in 3.2 s, and the round closes
/// without it"; or "…; worker 3 is stalled: it lives, and has neither fetched nor pushed for 40 s".
std::string DescribeOutlook(const OpenRoundFacts& facts);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_ROUND_OUTLOOK_H_
