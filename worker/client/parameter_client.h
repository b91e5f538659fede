#ifndef SLIPSTREAM_WORKER_CLIENT_PARAMETER_CLIENT_H_
#define SLIPSTREAM_WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/layout/shard_map.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/first_failure.h"
#include "worker/client/gradient_feed.h"
#include "worker/client/push_encoder.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_exchange.h"
#include "worker/client/shard_group.h"
#include "worker/client/shard_options.h"
#include "worker/client/weights_arrival.h"
#include "worker/client/weights_listener.h"
#include "worker/core/worker_core.h"

namespace slipstream {

/// The model as a training loop sees it: weights that come, gradients that go.
///
///   while (true) {
///     StatusOr<Step> step = client.Advance();   // Weights to compute a gradient from.
///     … the batches that *step names, or a unit of work for it, or the end …
///     GradientFeed& feed = client.BeginPush(0, {.batches = …, .examples = …});
///     … compute, and tell the feed of what is final …
///     client.FinishPush(0);                     // Or AbortPush, if it must not count.
///   }
///
/// It carries out what the worker's core decides: which shards to pull, which to tell that no
/// gradient comes, and under which sequence and base version a gradient goes out. Weights and
/// gradients are flat vectors of the whole model in the order of its layout, one of each per slot
/// of the pipeline.
///
/// Three lanes overlap: the caller computes, and for each shard a lane (shard_lanes.h) pushes
/// chunks as they become final and then writes the weights of the answer as they arrive. Advance
/// returns as soon as every shard has said which version it answers with; a WeightsListener hears
/// of the values. The version a gradient is pushed as is the one it was computed from: where a
/// repeated call replaces weights, the listener revokes them, the caller aborts the push, and
/// Advance tells how to start over. A model whose shards fit one message each has nothing to
/// overlap with one slot: FinishPush does it all then, on the caller's thread.
///
/// Not thread-safe: one owner, which computes; other threads may throw its switch, and may tell a
/// feed of ranges. The core is guarded by a mutex, because the lanes tell it of answers.
class ParameterClient {
 public:
  struct Options {
    Identity identity;

    /// host:port in the order of shards.
    std::vector<std::string> servers;
    ShardMap map;

    /// The consistency policy closes rounds of all members, and shard 0 names their batches.
    bool in_step = false;

    /// As WorkerCore::Options has them.
    bool releases_unused = false;
    uint64_t quantum = 1;

    /// The kind of values that the caller pushes.
    PushKind pushes = PushKind::kGradient;

    /// The caller changes the weights of a slot between what comes and the push that follows.
    bool has_local_weights = false;
    ShardOptions shards;
  };

  /// Where a gradient is computed, and its weights. What is borrowed must outlive the client.
  struct Slot {
    /// Written by lanes, from the answer to a push until all of it has arrived.
    std::span<float> weights;

    /// Read by lanes, from the push until all weights of its answer have arrived.
    std::span<const float> gradient;

    /// May be null: then FinishPush, or Drain with several slots or messages, has to be waited for.
    WeightsListener* listener = nullptr;
  };

  /// A push stands for these mini-batches, which have so many examples.
  struct Gradient {
    BatchRanges batches;
    uint32_t examples = 0;

    /// The caller's own number, by which a Transfer names the step.
    uint64_t step = 0;
  };

  /// How the exchange of one step went, lane by lane in the order of shards.
  struct Transfer {
    uint64_t step = 0;
    std::vector<LaneTimes> lanes;
  };

  /// What to do with the weights that are there, or on their way.
  struct Compute {
    BatchRanges batches;
  };
  struct AwaitUnit {};  // Call OnUnit or OnNoMoreUnits.
  struct Finished {};
  using Step = std::variant<Compute, AwaitUnit, Finished>;

  /// `slots`: one for each gradient that may be under way, at least one. `cancel` must outlive the
  /// client; a failure of any call throws it.
  ParameterClient(const Options& options, std::vector<Slot> slots, Sleeper sleeper,
                  CancelSwitch& cancel);

  /// Gives up pushes that were begun and neither finished nor aborted; waits for the others.
  ~ParameterClient();

  /// Sends the initial weights to all shards.
  absl::Status Initialize(uint64_t grant, std::span<const float> weights);

  /// Does what is needed before the slot's next gradient: waits for the answers to its last push,
  /// pulls, excuses and releases. Fails with the first failure of any call, see push_verdict.h.
  absl::StatusOr<Step> Advance(uint32_t slot = 0);

  /// Announces the gradient of the batches that Advance named; lanes begin to send what the feed
  /// calls final. The feed may be used until the push is finished or aborted, one of which must
  /// follow.
  GradientFeed& BeginPush(uint32_t slot, const Gradient& gradient);

  /// The gradient is complete and counts.
  absl::Status FinishPush(uint32_t slot);

  /// The gradient must not count. Advance names batches again, unless they are skipped.
  void AbortPush(uint32_t slot);

  /// Waits until everything begun is done: all pushes are answered, all weights in place.
  absl::Status Drain();

  /// The batches of the slot's aborted push are done without one, as their numbers are no gradient.
  /// Waits for the answers to older pushes.
  void Skip(uint32_t slot);

  // Work, of policies without rounds.
  void OnUnit(const WorkUnit& unit);
  void OnNoMoreUnits();
  void OnWorkEnds();
  bool wants_unit() const;
  std::vector<UnitProgress> progress() const;

  /// As WorkerCore has it.
  uint64_t split_pushes() const;

  Version version(ShardId shard, uint32_t slot = 0) const;

  /// The transfers that ended since the last call, oldest first.
  std::vector<Transfer> TakeTransfers();

 private:
  /// One gradient on its way. Owned by its slot, until that begins another, and by the lanes that
  /// work on it.
  struct Push {
    Push(uint32_t of_slot, const Gradient& of_gradient, size_t parameters, uint32_t shards)
        : slot(of_slot),
          gradient(of_gradient),
          feed(parameters),
          unanswered(shards),
          transfer{of_gradient.step, std::vector<LaneTimes>(shards)} {}

    const uint32_t slot;
    const Gradient gradient;
    GradientFeed feed;

    // Guarded by the client's mutex.
    uint32_t unanswered;     // Shards.
    uint32_t under_way = 0;  // Lanes.
    Transfer transfer;
  };

  absl::Status Pull(uint32_t slot, const WorkerCore::PullShards& action);

  /// Tells shards that no gradient comes, and takes weights if `pull`.
  absl::Status PushNothing(uint32_t slot, const std::vector<ShardId>& shards, bool pull);

  // In a lane.
  absl::Status ServePush(ShardClient& shard, Push& push);
  absl::Status ExchangePush(ShardClient& shard, Push& push);

  /// Sees the exchange through and tells the core what it is answered. `push` is null for an
  /// excuse.
  absl::Status Follow(const ShardClient& shard, uint32_t slot, Push* push, ShardExchange& exchange);
  absl::Status Heed(ShardId shard, uint32_t slot, Push* push, const ExchangeAnswer& answer,
                    bool is_first);

  /// What pushes of other slots to the shard have been answered already is in the sequence.
  PullRequest PullHeader(ShardId shard, uint32_t slot, Version min_version);

  /// Of the slot's next push. `pull`: whether its answer is to bring weights; unless given, whether
  /// there is more to compute from them.
  PushHeader Header(ShardId shard, uint32_t slot, const Gradient& gradient,
                    std::optional<bool> pull = std::nullopt);

  WeightsArrival ArrivalOf(const ShardClient& shard, uint32_t slot) const {
    return shard.ArrivalOf(slots_[slot].weights, slots_[slot].listener);
  }

  /// The encoder of the slot's gradients to the shard; null if they travel as they are.
  PushEncoder* EncoderOf(ShardId shard, uint32_t slot) {
    return encoders_.empty() ? nullptr : &encoders_[slot][Value(shard)];
  }

  void AwaitLanes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Fail(const absl::Status& status);

  // Constant after construction.
  const Identity identity_;
  const PushKind kind_;
  const bool has_local_weights_;
  const std::vector<Slot> slots_;

  /// Pushes go out, and weights come in, while the caller computes.
  const bool overlaps_;

  // Encoders by slot and shard, each used by its lane; none where gradients travel as they are.
  std::vector<std::vector<PushEncoder>> encoders_;

  std::vector<std::shared_ptr<Push>>
      pushes_;  // The newest of each slot; its pointer is the owner's.

  mutable Mutex mutex_;
  CondVar changed_;
  WorkerCore core_ ABSL_GUARDED_BY(mutex_);
  uint32_t lanes_under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  FirstFailure failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<Transfer> transfers_ ABSL_GUARDED_BY(mutex_);

  ShardGroup group_;  // Last, so that its lanes end before what they use.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_PARAMETER_CLIENT_H_
