#ifndef SLIPSTREAM_SERVER_CORE_ROUND_WORK_H_
#define SLIPSTREAM_SERVER_CORE_ROUND_WORK_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// Hands out the mini-batches where work comes in rounds: in a round of λ members the one of rank
/// k, in the order of worker ids, computes mini-batch first + k of the run-long sequence, where
/// `first` counts the mini-batches of all rounds before. A pure function of the rounds' members, so
/// one shard (the first) can say it in its answers and no call to the coordinator is on a step's
/// path.
///
/// The members of a round are fixed when somebody asks for the first time; who joins later is
/// excused. With the same members throughout, two runs hand out the same work.
///
/// Not thread-safe: one owner, which serialises calls.
class RoundWorkPlan {
 public:
  explicit RoundWorkPlan(uint64_t batches_total) : batches_total_(batches_total) {}

  /// What `worker` does in the open round. `members`, in order of ids, are fixed for the round by
  /// the first call.
  RoundWork For(WorkerId worker, const std::vector<WorkerId>& members);

  /// The open round has closed; the next one opens.
  void NextRound();

  /// The open round, if its members are fixed, is the last one with work.
  void Close();

  /// Of the rounds before the open one; above the run's total where the last round was not full.
  uint64_t batches_closed() const { return first_batch_; }

  /// True if the open round has no work for anybody.
  bool finished() const { return first_batch_ >= batches_total_; }

 private:
  uint64_t batches_total_;
  uint64_t first_batch_ = 0;
  std::vector<WorkerId> ranks_;  // Of the open round; empty until somebody asks.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_ROUND_WORK_H_
