#ifndef SLIPSTREAM_WORKER_CORE_WORKER_CORE_H_
#define SLIPSTREAM_WORKER_CORE_WORKER_CORE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/shard_messages.h"
#include "worker/core/unit_queue.h"

namespace slipstream {

/// The worker's side of the protocol: the weights it holds, the next push to each shard, and the
/// next action.
///
/// Answers of shards and units of work go in; Next() says what the shell has to do, and the shell
/// reports here when it has done that. A push stands for a quantum of mini-batches. There are two
/// sources of work. With rounds (hardsync), shard 0 names the mini-batches of one push with its
/// weights, and the worker owes a push to every round of every shard: it takes a step only when all
/// shards are at one version, and excuses itself from rounds that it cannot or need not fill.
/// Without rounds, the coordinator hands out units, and shards may be at any versions.
///
/// A pipeline of `depth` gradients has as many slots, each with its own weights. The slots take
/// turns: while the push of one is in flight, the next computes. The shell serves the slots round
/// robin, and each call names its slot; with depth 1 there is only slot 0.
///
/// A shard that goes on from an older state begins a new generation. It refuses pushes that were
/// computed from weights of an earlier generation, so the worker pulls from it anew. Where shards
/// are in step, they begin a new generation together: once one of them shows it, the weights of all
/// others are useless, too.
///
/// - a shard's sequence begins at 1 in each of its generations, and then goes up by one with each
///   push that uses it up, and never otherwise; the pushes of all slots to a shard share its
///   sequence, so they are sent, and answered, one after another
/// - with rounds, batches are named only while all shards are held at one version, and a worker
///   that joins does every batch that shard 0 names for it
/// - no batch is named for two slots, and batches are done in the order in which they were begun
///
/// Not thread-safe: one owner, which serialises calls.
class WorkerCore {
 public:
  struct Options {
    uint32_t shards = 1;

    /// Set if the worker takes steps only with all shards at one version, and shard 0 hands out its
    /// work, round by round.
    bool in_step = false;

    /// The number of gradients that may be in flight at once; 1 with rounds, also if these end with
    /// a stage of the run.
    uint32_t depth = 1;

    /// The number of mini-batches of one push, where units have that many, unless OnSteps names
    /// another.
    uint64_t quantum = 1;

    /// Set if the worker computes on weights of its own, and needs those of the shards only at the
    /// start and for each push (PullsOfPush).
    bool keeps_weights = false;

    /// The number of pushes from one fetch of weights to the next. After a push that fetches none,
    /// the worker goes on from its own weights. 1 with rounds, and where shards wait for members:
    /// they would have to know that the base stays in use. With several pushes in flight 1 or
    /// kNeverFetches, as the slots share the count; newer weights may then replace those of a slot
    /// before it begins batches (OnWeights).
    uint64_t pushes_per_fetch = 1;

    /// Set if shards may wait for a worker (for its gradients in flight, or for its clock) and so
    /// have to be told when no gradient will come.
    bool releases_unused = false;
  };

  /// The pull belongs to min_generation: so do min_version and the sequence of the shard.
  struct ShardPull {
    ShardId shard{};
    Version min_version{};
    Generation min_generation{};
    friend bool operator==(const ShardPull&, const ShardPull&) = default;
  };

  /// Pull the weights of these shards for training.
  struct PullShards {
    std::vector<ShardPull> pulls;
    friend bool operator==(const PullShards&, const PullShards&) = default;
  };

  /// Push no values to these shards, and take the weights of their answers.
  struct ExcuseShards {
    std::vector<ShardId> shards;
    friend bool operator==(const ExcuseShards&, const ExcuseShards&) = default;
  };

  /// Push no values to these shards, and take no weights: the weights held of them will not be
  /// used.
  struct ReleaseShards {
    std::vector<ShardId> shards;
    friend bool operator==(const ReleaseShards&, const ReleaseShards&) = default;
  };

  /// Compute these mini-batches (OnBatchesBegun) and push the result to every shard; then call
  /// OnBatchesDone. Without rounds, batches that every shard refused as too old are named again,
  /// for newer weights, unless other pushes are in flight behind them.
  struct ComputeBatches {
    BatchRanges batches;

    /// Whether to take weights with the answers, because there is, or may be, more to compute.
    bool pull = true;
    friend bool operator==(const ComputeBatches&, const ComputeBatches&) = default;
  };

  /// Wait for the unit that was asked for.
  struct AwaitUnit {
    friend bool operator==(const AwaitUnit&, const AwaitUnit&) = default;
  };

  /// Nothing is left for this worker to do.
  struct Finished {
    friend bool operator==(const Finished&, const Finished&) = default;
  };

  using Action =
      std::variant<PullShards, ExcuseShards, ReleaseShards, ComputeBatches, AwaitUnit, Finished>;

  /// A stage of the run, and the options that follow from the policy in force.
  struct Stage {
    /// The place in the run's stages.
    uint32_t number = 0;

    /// The stage since which shards take gradients: of weights from before, they take them for
    /// late.
    uint32_t since = 0;

    // The same as in Options.
    bool in_step = false;
    bool releases_unused = false;
  };

  /// REQUIRES: options.shards > 0; options.depth > 0, and 1 with rounds; options.quantum > 0;
  /// options.pushes_per_fetch > 0, and 1 as described there.
  explicit WorkerCore(const Options& options);

  /// Returns whether the worker goes on in the stage with the weights, pushes and units that it
  /// has.
  bool GoesOnIn(const Stage& stage) const { return stage.since <= stage_.number; }

  /// Goes on with a later stage of the run, once the coordinator has said that all shards have
  /// reached it. Weights from before stage.since are not used any more. REQUIRES: a number above
  /// that of the stage. If it goes on as it is, neither stage is in step; else no push is in
  /// flight.
  void EnterStage(const Stage& stage);

  /// Returns the slot's next action. Finished means that nothing is left for this slot in this
  /// stage of the run; the batches of other slots may still be in flight.
  Action Next(uint32_t slot = 0) const;

  /// Returns the pulls to make just before the slot's push, by a worker that keeps its weights:
  /// what it pushes is relative to the newest weights. With rounds these are held already, so the
  /// list is empty.
  PullShards PullsOfPush(uint32_t slot = 0) const;

  /// Notes that the slot's push stands for these batches, which Next() named; other slots take
  /// later ones. Units that have arrived since then are not part of the push.
  void OnBatchesBegun(const BatchRanges& batches, uint32_t slot = 0);

  /// Notes the final answer to a push to `shard`. The weights held of the shard are used up;
  /// OnWeights follows if the answer brought others. Fails, and the worker must then fail too, if
  /// the push was refused in a way that repeating cannot fix. REQUIRES: Judge(reply.outcome) !=
  /// kSendAgain.
  absl::Status OnReply(ShardId shard, const PushReply& reply, uint32_t slot = 0);

  /// Notes the answer to a push that has its final answer already: the shard was asked again
  /// because the weights of that answer broke off. If the shard has begun a new generation since
  /// then, no weights are held of it any more, and Next() says to pull them. Fails if the answer
  /// does not fit the first one.
  absl::Status OnRepeatedReply(ShardId shard, const PushReply& reply, uint32_t slot = 0);

  /// Notes that `shard` sends weights, which replace those held of it, or those that the worker
  /// goes on from. Weights from before the stage's `since` are not held, and Next() says to pull.
  /// Fails if the shard's version went back within a generation, or if it is to name work and names
  /// none.
  absl::Status OnWeights(ShardId shard, const WeightsHeader& header, uint32_t slot = 0);

  /// Notes that every shard has answered the push of the batches that the slot began. REQUIRES:
  /// they are the oldest in flight.
  void OnBatchesDone(uint32_t slot = 0);

  /// Notes that the batches that the slot began are done without a push. With rounds, the slot next
  /// excuses itself from the open round. Without rounds, it pulls, after it has released weights
  /// that shards may wait for. REQUIRES: the batches are the oldest in flight. Shards that have
  /// answered a part of their push, if any, may hold newer weights or none.
  void OnBatchesSkipped(uint32_t slot = 0);

  void OnUnit(const WorkUnit& unit) { units_.Add(unit); }
  void OnNoMoreUnits() { units_.Close(); }

  /// Notes that the shards, which are in step, have begun this generation. The slots pull again.
  void OnReturned(Generation generation) { MeetGeneration(ShardId{0}, generation); }

  /// Returns the newest generation of a shard that is known.
  Generation newest_generation() const { return *std::ranges::max_element(generations_); }

  /// Notes that the next pushes without rounds stand for this many mini-batches; below 1 and above
  /// options.quantum the bound counts. Next() names those anew that it has named and that are not
  /// begun.
  void OnSteps(uint64_t steps) {
    units_.SetQuantum(std::clamp<uint64_t>(steps, 1, options_.quantum));
  }

  /// Notes that only the mini-batches in flight are to be done. Has no effect with rounds, where
  /// shard 0 announces the end.
  void OnWorkEnds() { units_.DropAllBut(BatchesThrough(begun_.size())); }

  /// The same as in UnitQueue; 0 with rounds.
  uint64_t wanted() const { return stage_.in_step ? 0 : units_.wanted(); }
  std::vector<UnitProgress> progress() const { return units_.progress(); }

  /// The number of pushes that counted at some shards and were dropped at others.
  uint64_t split_pushes() const { return split_pushes_; }

  /// The sequence of the next push to `shard`, in the newest generation of the shard that is known.
  Sequence sequence(ShardId shard) const { return sequence(shard, generations_.at(Value(shard))); }

  /// Does the same for `generation`, which is the newest or an earlier one: a push whose base is of
  /// that generation belongs to it.
  Sequence sequence(ShardId shard, Generation generation) const;

  /// The version, and the generation, of the weights held or last held. Version 0 if that
  /// generation is over.
  Version version(ShardId shard, uint32_t slot = 0) const {
    return slots_.at(slot).at(Value(shard)).version;
  }
  Generation generation(ShardId shard, uint32_t slot = 0) const {
    return slots_.at(slot).at(Value(shard)).generation;
  }

  /// Whether the slot's push should bring weights: there is, or may be, another batch to compute
  /// from them.
  bool wants_weights(uint32_t slot = 0) const;

  /// Whether the worker goes on from weights of its own after the push that it began last, instead
  /// of taking those of the answer.
  bool goes_on() const {
    const bool is_between_fetches =
        pushes_of_fetch_ > 0 && pushes_of_fetch_ < options_.pushes_per_fetch;
    return options_.keeps_weights || is_between_fetches;
  }

  /// The fields of a slot's push to `shard` other than its gradient.
  struct PushTerms {
    /// Set if the answer should bring weights.
    bool pull = false;

    /// The worker's clock, including this push; in a push without values, the number of completed
    /// pushes.
    WorkerClock clock{};

    /// Set if no batch is at hand behind this push, so nobody should wait for the worker.
    bool rests = false;

    /// Set if the batches that shard 0 named were skipped.
    bool leaves_out = false;
  };

  /// Returns the terms of the slot's next push to `shard`, which must be made now. `pull`: set for
  /// a push without values, to say whether weights should come; otherwise wants_weights() decides.
  PushTerms TermsOfPush(ShardId shard, uint32_t slot = 0, std::optional<bool> pull = std::nullopt);

  /// Returns the worker's clock including all pushes that it has begun, for a pull from `shard`
  /// that must be made now.
  WorkerClock ClockOfPull(ShardId shard);

 private:
  struct Held {
    Generation generation{};
    Version version{};
    Generation answered_in{};  // The generation in which the shard answered the last push.
    uint32_t stage = 0;        // The shard's when it sent the weights.
    bool is_held = false;      // The weights of `version` have arrived, and no push has used them.
    bool is_kept = false;      // The worker goes on from weights of its own that began with these.
    bool was_dropped = false;  // The last push came too late for its round.

    /// Set if a late push was answered with the same version again: the shard has reached its last
    /// version.
    bool goes_no_further = false;
  };
  using Slot = std::vector<Held>;  // By shard.

  /// The batches that a slot has begun.
  struct Begun {
    uint32_t slot = 0;
    BatchRanges batches;
  };

  /// The shards' answers so far to the batches that a slot has begun.
  struct Answers {
    bool counts = false;
    bool is_dropped = false;
  };

  /// The number of pushes in flight that are older than the slot's.
  size_t Ahead(uint32_t slot) const;

  /// The number of mini-batches of the oldest `pushes` pushes in flight.
  uint64_t BatchesThrough(size_t pushes) const;

  /// Returns the batches that the slot has begun, else the next ones at hand; empty if there are
  /// none.
  BatchRanges BatchesOfUnits(uint32_t slot) const;

  /// The number of pushes begun since the last fetch of weights, including the slot's next one.
  uint64_t PushesOfFetch(uint32_t slot) const;

  /// Notes that the shard has shown this generation. If it was not known yet, sequences begin anew
  /// in it: those of all shards if they are in step.
  void MeetGeneration(ShardId shard, Generation generation);
  void BeginGeneration(ShardId shard, Generation generation);

  /// Lets go of weights of the shard whose generation is over.
  static void EndGeneration(Held& shard, Generation next);

  /// Whether weights of a shard are held that may be used.
  bool Has(ShardId shard, const Slot& slot) const;

  /// Returns the pull of a shard of which no weights are held.
  ShardPull PullOf(ShardId shard, Version min_version) const {
    return {shard, min_version, generations_[Value(shard)]};
  }

  /// The newest version held of any shard in its newest generation. With rounds alone.
  Version NewestOf(const Slot& slot) const;
  std::optional<Action> PullWhatIsMissing(const Slot& slot) const;
  std::optional<Action> ReleaseWhatIsHeld(const Slot& slot) const;

  /// Releases weights that are held and not needed, and announces the rest to shards that may
  /// consider the worker at work.
  std::optional<Action> ReleaseAndRest(const Slot& slot) const;
  WorkerClock clock_begun() const { return WorkerClock{completed_ + begun_.size()}; }
  /// Excuses the worker from rounds of shards that are behind others; from the oldest rounds first.
  /// `may_be_last`: a shard may stay behind that goes no further.
  std::optional<Action> ExcuseWhereBehind(bool may_be_last) const;
  Action NextOfRounds() const;
  Action NextOfUnits(uint32_t slot) const;

  // Constant after construction.
  const Options options_;

  Stage stage_;

  /// Set once a shard has answered from a later stage: this one has no more rounds.
  bool is_stage_over_ = false;

  std::vector<Generation> generations_;  // By shard: the newest generation that is known.

  // By shard and generation: the sequence of the next push, where one was taken. Weights may be
  // held of any earlier generation, and several generations may have begun since.
  std::vector<std::map<Generation, Sequence>> sequences_;

  // By shard: the newest generation that the shard itself has shown, where shards are in step and a
  // generation of one is one of all.
  std::vector<Generation> shown_;
  std::vector<Slot> slots_;

  /// The number of this worker's pushes that are answered or were skipped. Where others went on
  /// while the worker rested or before it joined, the count continues from the clock that shard 0
  /// named.
  uint64_t completed_ = 0;
  std::vector<bool> is_at_work_;  // By shard: not told that the worker rests.
  std::vector<bool> is_spent_;    // By slot: its weights will not be used.
  std::vector<Answers> answers_;  // By slot.
  uint64_t split_pushes_ = 0;
  std::vector<Begun> begun_;  // The pushes in flight, oldest first.

  /// The number of pushes begun since the weights of all shards were fetched.
  uint64_t pushes_of_fetch_ = 0;

  // The work that shard 0 named with the weights held of it. Empty without rounds.
  std::optional<RoundWork> work_;
  bool is_left_out_ = false;  // Set if the batches of `work_` were skipped.
  UnitQueue units_;           // For policies without rounds.
  bool push_counts_ = false;  // Whether any shard has taken the gradient of the batches at hand.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_WORKER_CORE_H_
