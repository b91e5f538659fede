#ifndef SLIPSTREAM_SERVER_CORE_SHARD_OPEN_ROUND_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_OPEN_ROUND_H_

#include <optional>
#include <set>
#include <utility>

#include "common/base/ids.h"
#include "server/core/shard/awaited_members.h"
#include "server/core/shard/round.h"
#include "server/core/shard/round_work.h"

namespace slipstream {

/// The round whose gradients make the next version, what is known of the one before, and the
/// mini-batches that are handed out for it.
///
/// Invariant: `awaited` is what its constructor would make of the members, round and version.
struct OpenRound {
  Round round;

  /// Set where a round takes one gradient from each member. It is not saved.
  std::optional<AwaitedMembers> awaited = std::nullopt;

  /// Set once the staleness guard has held the round back.
  bool was_held_back = false;

  /// Under hardsync, the workers whose mini-batches were done in the round before. Empty after the
  /// step to another stage or generation.
  std::set<WorkerId> did_last;

  /// Set where work comes in rounds, on shard 0.
  std::optional<RoundWorkPlan> work;

  /// As Round has them.
  void Add(const Round::Contribution& contribution) {
    round.Add(contribution);
    Hear(contribution.worker);
    for (const Round::Contribution::Other& other : contribution.others) Hear(other.worker);
  }
  void Excuse(WorkerId worker, bool leaves_out = false) {
    round.Excuse(worker, leaves_out);
    Hear(worker);
  }

  /// Closes the round and opens `next`, which starts from `decided`. `notes_done`: as did_last.
  void Close(Round next, Version decided, bool notes_done) {
    was_held_back = false;
    if (work.has_value()) {
      work->NextRound([this](WorkerId worker) { return round.HasDone(worker); });
    }
    if (notes_done) did_last = round.TakeDone();
    round = std::move(next);
    if (awaited.has_value()) awaited->BeginRound(decided);
  }

  /// Begins anew with `first`, in another stage or generation. The work is not changed, and
  /// `awaited` is to be made anew.
  void Begin(Round first) {
    round = std::move(first);
    was_held_back = false;
    did_last.clear();
  }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.round, self.was_held_back, self.did_last, self.work);
  }

 private:
  void Hear(WorkerId worker) {
    if (awaited.has_value()) awaited->Hear(worker);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_OPEN_ROUND_H_
