#ifndef SLIPSTREAM_SERVER_STATUS_ROUND_OUTLOOK_H_
#define SLIPSTREAM_SERVER_STATUS_ROUND_OUTLOOK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

/// What is known of an open round that waits.
struct OpenRoundFacts {
  /// Whom the round cannot close without: who owes it a gradient, or whose gradient on its way
  /// would come to exceed the staleness guard's bound. Empty if it is nobody.
  struct Awaited {
    WorkerId worker{};
    bool is_live = true;
    absl::Duration lease_left;
  };
  std::vector<Awaited> awaited;
  bool is_held_back_by_guard = false;

  /// How many gradients it still lacks, whoever brings them.
  uint32_t gradients_missing = 0;
  uint32_t live_workers = 0;
};

/// What will happen to the round, and when, in a sentence without an end: "closes when worker 3
/// pushes; without a word from worker 3 its lease ends in 3.2 s, and the round closes without it".
std::string DescribeOutlook(const OpenRoundFacts& facts);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_ROUND_OUTLOOK_H_
