#ifndef SLIPSTREAM_SERVER_CORE_ROUND_WORK_H_
#define SLIPSTREAM_SERVER_CORE_ROUND_WORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// Hands out the mini-batches where work comes in rounds: each member of a round computes those of
/// one push, the next of the run-long sequence in the order of worker ids. A pure function of the
/// rounds' members and of whose gradients came in each, so one shard (the first) can say it in its
/// answers and no call to the coordinator is on a step's path.
///
/// Mini-batches are done once the round that they were named for has their gradient, or they are
/// left out. Those whose worker was late, or has left, are named again before new ones, and first
/// to those who did theirs in the last round: an epoch is one pass over the data.
///
/// The members of a round are fixed when somebody asks for the first time; who joins later is
/// excused. With the same members throughout, and nobody late, two runs hand out the same work.
///
/// Not thread-safe: one owner, which serialises calls.
class RoundWorkPlan {
 public:
  /// `quantum`: mini-batches of one push; the last ones of the run may be fewer.
  /// REQUIRES: quantum > 0.
  explicit RoundWorkPlan(uint64_t batches_total, uint64_t quantum = 1)
      : batches_total_(batches_total), quantum_(quantum) {}

  /// What `worker` does in the open round. `members`, in order of ids, are fixed for the round by
  /// the first call.
  RoundWork For(WorkerId worker, const std::vector<WorkerId>& members);

  /// The open round has closed; the next one opens. `has_done` says whose mini-batches are done
  /// with.
  void NextRound(const std::function<bool(WorkerId)>& has_done);

  /// The open round, if its members are fixed, is the last one with work.
  void Close();

  /// Mini-batches done in the rounds before the open one.
  uint64_t batches_done() const { return batches_done_; }

  /// True if the open round has no work for anybody.
  bool finished() const {
    return named_.empty() && again_.empty() && next_batch_ >= batches_total_;
  }

 private:
  void NameBatches(const std::vector<WorkerId>& members);

  uint64_t batches_total_;
  uint64_t quantum_;
  uint64_t next_batch_ = 0;  // Those from here on were never named.
  uint64_t batches_done_ = 0;
  bool is_closed_ = false;

  /// Named and not done, by their first: to be named again.
  std::map<uint64_t, BatchRange> again_;
  std::set<WorkerId> did_last_;

  /// The mini-batches of the open round; empty until somebody asks.
  std::map<WorkerId, BatchRange> named_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_ROUND_WORK_H_
