#ifndef SLIPSTREAM_WORKER_CORE_FRAGMENTS_H_
#define SLIPSTREAM_WORKER_CORE_FRAGMENTS_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace slipstream {

/// The parts in which a worker pushes, of a model that is cut into fragments as in Streaming DiLoCo
/// (arXiv 2501.18512). A push stands for a number of local steps, and each fragment's part of it
/// leaves after a different number of them, evenly spread. Fragment k of P holds the weights of the
/// shards k, k + P, k + 2P, …
///
/// Fragments leave in the order of their numbers, whatever the number of steps; with fewer steps
/// than fragments, several leave at once. In another order, workers with unequal numbers of steps
/// would wait for each other in the rounds of two shards.
///
/// Fragment 0 leaves last: where work comes in rounds, shard 0 names the next mini-batches, so the
/// worker could not go on anyway. To every shard the push looks like one whose parts leave at once:
/// it has one number, one clock and the same mini-batches everywhere. A shard's values come from
/// the steps since its last part, which are as many as the push's mini-batches only while pushes
/// have equal numbers of steps.
///
/// Immutable.
class Fragments {
 public:
  /// One fragment, whose only part leaves after the last step.
  Fragments() = default;

  /// `delay`: the number of steps that a worker takes while a fragment is exchanged. REQUIRES:
  /// count > 0.
  Fragments(uint32_t count, uint64_t delay) : count_(count), delay_(delay) {}

  uint32_t count() const { return count_; }
  uint64_t delay() const { return delay_; }

  /// Returns those of `unsent`, the shards whose part has not left, whose part leaves after `taken`
  /// of the push's `steps` steps. A part that could not leave when it was due leaves with the next
  /// one. None after the last step, when all parts leave that have not left before.
  std::vector<ShardId> LeavingAfter(uint64_t taken, uint64_t steps,
                                    std::vector<ShardId> unsent) const;

 private:
  uint32_t count_ = 1;
  uint64_t delay_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_FRAGMENTS_H_
