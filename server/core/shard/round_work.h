#ifndef SLIPSTREAM_SERVER_CORE_SHARD_ROUND_WORK_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_ROUND_WORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// Hands out the mini-batches where work comes in rounds: each member of a round computes those of
/// one push, the next of the run-long sequence in the order of worker ids. The plan is a pure
/// function of the rounds' members and of whose gradients came in each round. So one shard (the
/// first) can tell it in its answers, and no step needs a call to the coordinator.
///
/// Mini-batches are done once the round that they were named for has their gradient, or once they
/// are left out. Mini-batches whose worker was late or has left are named again before new ones,
/// and first to the workers that did theirs in the last round: an epoch is one pass over the data.
///
/// The members of a round are fixed when a worker first asks; a worker that joins later is excused.
/// With the same members throughout, and nobody late, two runs hand out the same work.
///
/// Not thread-safe: one owner, which serialises calls.
class RoundWorkPlan {
 public:
  /// Hands out the mini-batches [begin, end). `quantum`: those of one push; the last push may have
  /// fewer. REQUIRES: quantum > 0; begin ≤ end.
  explicit RoundWorkPlan(uint64_t end = 0, uint64_t quantum = 1, uint64_t begin = 0)
      : end_(end), quantum_(quantum), next_batch_(begin), batches_done_(begin) {}

  /// Whether the mini-batches of the open round are named, and so its members fixed.
  bool has_named() const { return !named_.empty(); }

  /// Returns what `worker` does in the open round. If they are not, this fixes `members`, in order
  /// of ids, for the round.
  RoundWork For(WorkerId worker, const std::vector<WorkerId>& members);

  /// Returns the mini-batches that the worker has done in the last round; nothing if it did none.
  std::optional<BatchRange> LastOf(WorkerId worker) const;

  /// Closes the open round and opens the next one. `has_done` tells whose mini-batches are done or
  /// left out.
  void NextRound(const std::function<bool(WorkerId)>& has_done);

  /// Makes the open round the last one with work if its members are fixed; else no work is left.
  void Close();

  /// Lets the work end before `end` already, or, if mini-batches from there on have been named,
  /// with the epoch of the last one named. REQUIRES: per_epoch > 0.
  void EndBy(uint64_t end, uint64_t per_epoch);

  /// The number of mini-batches done in the rounds before the open one, and of those before
  /// `begin`.
  uint64_t batches_done() const { return batches_done_; }

  /// Returns true if the open round has no work for anybody.
  bool finished() const { return named_.empty() && again_.empty() && next_batch_ >= end_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.end_, self.quantum_, self.next_batch_, self.batches_done_, self.is_closed_,
            self.again_, self.did_last_, self.named_);
  }

 private:
  void NameBatches(const std::vector<WorkerId>& members);

  uint64_t end_;
  uint64_t quantum_;
  uint64_t next_batch_;  // Mini-batches from this one on were never named.
  uint64_t batches_done_;
  bool is_closed_ = false;

  /// Mini-batches that were named and not done, by their first. They are named again.
  std::map<uint64_t, BatchRange> again_;

  /// The mini-batches that were done in the last round that named some.
  std::map<WorkerId, BatchRange> did_last_;

  /// The mini-batches of the open round; empty until a worker asks.
  std::map<WorkerId, BatchRange> named_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_ROUND_WORK_H_
