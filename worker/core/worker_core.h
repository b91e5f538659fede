#ifndef SLIPSTREAM_WORKER_CORE_WORKER_CORE_H_
#define SLIPSTREAM_WORKER_CORE_WORKER_CORE_H_

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/shard_messages.h"
#include "worker/core/unit_queue.h"

namespace slipstream {

/// The worker's side of the protocol: which weights it holds, which push comes next on each shard,
/// and what to do next.
///
/// Answers of shards and units of work go in; Next() says what the shell has to do, which it does
/// and then reports here. A push stands for a quantum of mini-batches. There are two sources of
/// work. With rounds (hardsync), shard 0 names those of one push with its weights, and the worker
/// owes a push to every round of every shard: it steps with all shards at one version, and excuses
/// itself from rounds that it cannot or need not fill. Without rounds, the coordinator hands out
/// units, and shards may be at any versions.
///
/// A pipeline of `depth` gradients has as many slots, each with weights of its own, that take
/// turns: while the push of one is under way, the next computes. The shell works them round robin,
/// and each call names its slot; with depth 1 there is slot 0 alone.
///
/// Invariants:
///  - sequences of a shard go up by one with each push that used one up, and never otherwise;
///    pushes of all slots to a shard share them, so they go out, and are answered, one after
///    another
///  - with rounds, batches are named only while all shards are held at one version, and who joins
///    does every batch that shard 0 names for it
///  - no batch is named for two slots, and batches are done in the order they were begun
///
/// Not thread-safe: one owner, which serialises calls.
class WorkerCore {
 public:
  struct Options {
    uint32_t shards = 1;

    /// The worker steps with all shards at one version, and shard 0 hands out its work, round by
    /// round.
    bool in_step = false;

    /// Gradients that may be under way at once; 1 with rounds.
    uint32_t depth = 1;

    /// Mini-batches of one push, where units have so many.
    uint64_t quantum = 1;

    /// Shards may wait for a worker, for its gradients on their way or for its clock, and so have
    /// to be told where none will come.
    bool releases_unused = false;
  };

  struct ShardPull {
    ShardId shard{};
    Version min_version{};
    friend bool operator==(const ShardPull&, const ShardPull&) = default;
  };

  /// Pull the weights of these shards, to train on.
  struct PullShards {
    std::vector<ShardPull> pulls;
    friend bool operator==(const PullShards&, const PullShards&) = default;
  };

  /// Push no values to these shards, and take the weights that they answer with.
  struct ExcuseShards {
    std::vector<ShardId> shards;
    friend bool operator==(const ExcuseShards&, const ExcuseShards&) = default;
  };

  /// Push no values to these shards, and take none: what is held of them will not be used.
  struct ReleaseShards {
    std::vector<ShardId> shards;
    friend bool operator==(const ReleaseShards&, const ReleaseShards&) = default;
  };

  /// Compute these mini-batches (OnBatchesBegun) and push what comes of them to every shard; then
  /// OnBatchesDone. Without rounds, those that every shard refused for their age are named again,
  /// for newer weights, unless others are under way behind them.
  struct ComputeBatches {
    BatchRanges batches;

    /// Take weights with the answers: there is, or may be, more to compute.
    bool pull = true;
    friend bool operator==(const ComputeBatches&, const ComputeBatches&) = default;
  };

  /// Wait for the unit asked for.
  struct AwaitUnit {
    friend bool operator==(const AwaitUnit&, const AwaitUnit&) = default;
  };

  /// Nothing is left for this worker.
  struct Finished {
    friend bool operator==(const Finished&, const Finished&) = default;
  };

  using Action =
      std::variant<PullShards, ExcuseShards, ReleaseShards, ComputeBatches, AwaitUnit, Finished>;

  /// REQUIRES: options.shards > 0; options.depth > 0, and 1 with rounds; options.quantum > 0.
  explicit WorkerCore(const Options& options);

  /// Of Finished: nothing is left for this slot; the batches of others may be under way.
  Action Next(uint32_t slot = 0) const;

  /// The slot's push stands for these batches, which Next() named for it; others take later ones.
  /// Units that have come since then are not part of it.
  void OnBatchesBegun(const BatchRanges& batches, uint32_t slot = 0);

  /// A push to `shard` was answered, for good. The weights held of it are used up; OnWeights
  /// follows if the answer brought others. Fails, as the worker must, if the push was refused in a
  /// way that repeating cannot mend. REQUIRES: the outcome is not one to send again.
  absl::Status OnReply(ShardId shard, const PushReply& reply, uint32_t slot = 0);

  /// `shard` sends weights; where others of it are held, they are replaced. Fails if its clock went
  /// back, or if it owes work and names none.
  absl::Status OnWeights(ShardId shard, const WeightsHeader& header, uint32_t slot = 0);

  /// Every shard has answered the push of the batches that the slot began. REQUIRES: they are the
  /// oldest.
  void OnBatchesDone(uint32_t slot = 0);

  /// The batches that the slot began are done without a push. With rounds, the slot excuses itself
  /// from the open one next; without, it pulls, after it has released what shards may wait for.
  /// REQUIRES: they are the oldest, and their weights are held.
  void OnBatchesSkipped(uint32_t slot = 0);

  void OnUnit(const WorkUnit& unit) { units_.Add(unit); }
  void OnNoMoreUnits() { units_.Close(); }

  /// Of the units only what is under way is to be done. Without effect with rounds, where shard 0
  /// says so.
  void OnWorkEnds() { units_.DropAllBut(BatchesThrough(begun_.size())); }

  /// A unit should be asked for now, to be there when it is needed.
  bool wants_unit() const { return !options_.in_step && units_.wants_unit(); }
  std::vector<UnitProgress> progress() const { return units_.progress(); }

  /// Pushes that counted at some shards and were dropped at others.
  uint64_t split_pushes() const { return split_pushes_; }

  /// Of the next push to `shard`.
  Sequence sequence(ShardId shard) const { return sequences_.at(Value(shard)); }

  /// Of the weights held, or last held.
  Version version(ShardId shard, uint32_t slot = 0) const {
    return slots_.at(slot).at(Value(shard)).version;
  }
  Life life(ShardId shard, uint32_t slot = 0) const {
    return slots_.at(slot).at(Value(shard)).life;
  }

  /// Whether the slot's push is to bring weights: it has, or may have, another batch to compute.
  bool wants_weights(uint32_t slot = 0) const;

  /// What a push of the slot to `shard` says, beside its gradient.
  struct PushTerms {
    /// Weights are to come with the answer.
    bool pull = false;

    /// The worker's clock with this push; of one without values, that of what it has completed.
    WorkerClock clock{};

    /// Behind it no batch is at hand, so nobody shall wait for the worker.
    bool rests = false;

    /// The batches that shard 0 named were skipped.
    bool leaves_out = false;
  };

  /// The terms of the slot's next push to `shard`, which is made now. `pull`: of a push without
  /// values, whether weights are to come; else wants_weights() says it.
  PushTerms TermsOfPush(ShardId shard, uint32_t slot = 0, std::optional<bool> pull = std::nullopt);

  /// The worker's clock with all pushes that it has begun, which a pull from `shard` names now.
  WorkerClock ClockOfPull(ShardId shard);

 private:
  struct Held {
    Life life{};
    Version version{};
    bool is_held = false;      // Weights of `version` are there, and no push has used them.
    bool was_dropped = false;  // The last push, which came too late.

    /// Though that was of this very version: the shard has come to its last one.
    bool goes_no_further = false;
  };
  using Slot = std::vector<Held>;  // By shard.

  /// The batches that a slot has begun.
  struct Begun {
    uint32_t slot = 0;
    BatchRanges batches;
  };

  /// The answers of shards, so far, to the batches that a slot has begun.
  struct Answers {
    bool counts = false;
    bool is_dropped = false;
  };

  /// Pushes under way that are older than the slot's.
  size_t Ahead(uint32_t slot) const;

  /// The batches of the oldest `pushes` under way.
  uint64_t BatchesThrough(size_t pushes) const;

  /// Returns what the slot has begun of units; else the next ones at hand, and none if none are.
  BatchRanges BatchesOfUnits(uint32_t slot) const;
  std::optional<Action> PullWhatIsMissing(const Slot& slot) const;
  std::optional<Action> ReleaseWhatIsHeld(const Slot& slot) const;

  /// What is held and not needed, and the rest, where a shard may think the worker at work.
  std::optional<Action> ReleaseAndRest(const Slot& slot) const;
  WorkerClock clock_begun() const { return WorkerClock{completed_ + begun_.size()}; }
  Action NextOfRounds() const;
  Action NextOfUnits(uint32_t slot) const;

  // Constant after construction.
  const Options options_;

  std::vector<Sequence> sequences_;  // By shard.
  std::vector<Slot> slots_;

  /// The pushes that are answered, or were skipped, by this worker's count; where others
  /// went on while it rested, or before it joined, from the count on that shard 0 named.
  uint64_t completed_ = 0;
  std::vector<bool> is_at_work_;  // By shard: it knows of no rest.
  std::vector<bool> is_spent_;    // By slot: what is held of it will not be used.
  std::vector<Answers> answers_;  // By slot.
  uint64_t split_pushes_ = 0;
  std::vector<Begun> begun_;       // What is under way, oldest first.
  std::optional<RoundWork> work_;  // Of rounds: what shard 0 named with the weights held of it.
  bool is_left_out_ = false;       // Those batches were skipped.
  UnitQueue units_;                // Of policies without.
  bool push_counts_ = false;       // Some shard has taken the gradient of the batches at hand.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_WORKER_CORE_H_
