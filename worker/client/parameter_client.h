#ifndef SLIPSTREAM_WORKER_CLIENT_PARAMETER_CLIENT_H_
#define SLIPSTREAM_WORKER_CLIENT_PARAMETER_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/run_spec.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/first_failure.h"
#include "worker/client/gradient_client.h"
#include "worker/client/gradient_feed.h"
#include "worker/client/joining.h"
#include "worker/client/newest_weights.h"
#include "worker/client/push_encoders.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_exchange.h"
#include "worker/client/shard_group.h"
#include "worker/client/shard_options.h"
#include "worker/client/weights_arrival.h"
#include "worker/core/worker_core.h"
#include "worker/core/worker_session.h"

namespace slipstream {

/// The client of a worker whose gradients go to the servers.
///
/// The client carries out the decisions of WorkerSession and its core: which shards to pull from,
/// which shards to tell that no gradient comes, and with which header a gradient is pushed.
/// Weights and gradients are flat vectors of the whole model in the order of its layout, one of
/// each per pipeline slot.
///
/// Computation, pushes and arriving weights overlap: while the caller computes, each shard has a
/// lane (shard_group.h) that pushes chunks as they become final and then writes the weights of the
/// answer as they arrive. Advance returns as soon as every shard has said which version it answers
/// with; a WeightsListener is told when the values arrive. A gradient is pushed with the version
/// that it was computed from: where a repeated call replaces weights, the listener revokes them,
/// the caller aborts the push, and Advance says how to start over. With free lanes, no push brings
/// weights, and other lanes follow the shards' versions (newest_weights.h). With one slot, a model
/// of small shards (ShardOptions::alone_bytes_max) has nothing to overlap: FinishPush then begins
/// the exchanges, and makes that of the first shard on the caller's thread.
///
/// Not thread-safe: one owner, which computes; other threads may throw the CancelSwitch and report
/// ranges to a feed. The session is guarded by a mutex, because the lanes report answers to it.
class ParameterClient final : public GradientClient {
 public:
  struct Options {
    Identity identity;

    /// The addresses, host:port, in the order of shards.
    std::vector<std::string> servers;

    /// The addresses of the worker's aggregators (cluster.tree), in the order of shards; empty if
    /// there are none.
    std::vector<std::string> aggregators = {};
    ShardMap map;

    /// Set if the consistency policy closes rounds of all members; shard 0 then names their
    /// batches.
    bool in_step = false;

    /// The same as in WorkerCore::Options.
    bool releases_unused = false;
    uint64_t quantum = 1;

    /// The same as in WorkerCore::Options.
    bool keeps_weights = false;

    /// The same as in WorkerCore::Options.
    uint64_t pushes_per_fetch = 1;

    /// Set if the newest weights come beside the pushes (TakeNewest). pushes_per_fetch is then
    /// kNeverFetches.
    bool has_free_lanes = false;

    /// The kind of values that the caller pushes.
    PushKind pushes = PushKind::kGradient;

    /// Set if the caller changes a slot's weights between their arrival and the push that follows.
    bool changes_weights = false;

    /// Set if the caller computes while parts of a push are sent (PushPart).
    bool sends_parts_ahead = false;

    /// The values that the shards' rule leaves as they are, whatever is pushed; may be empty if
    /// there are none.
    PushEncoders::Frozen frozen = {};
    ShardOptions shards;

    /// Returns the options that the run asks for of a member. `layout`: that of the model,
    /// which `map` cuts.
    static Options For(const RunSpec& run, const JoinedRun& joined, const TensorLayout& layout,
                       const ShardMap& map, const ShardOptions& shards);
  };

  /// The memory of one pipeline slot: a gradient and the weights that it is computed from. It must
  /// outlive the client.
  struct Slot {
    /// Lanes write it from the answer to a push until all weights of the answer have arrived.
    std::span<float> weights;

    /// Lanes read it from the push until all weights of its answer have arrived.
    std::span<const float> gradient;

    /// May be null. The caller then has to wait for the weights itself: with FinishPush, or with
    /// Drain where there are several slots or messages, or parts are sent ahead.
    WeightsListener* listener = nullptr;
  };

  /// `slots`: one for each gradient that may be in flight, at least one. `cancel` must outlive the
  /// client; a failure of any call throws it.
  ParameterClient(const Options& options, std::vector<Slot> slots, Sleeper sleeper,
                  CancelSwitch& cancel);

  /// Aborts pushes that were begun and neither finished nor aborted; waits for the others.
  ~ParameterClient() override;

  /// Sends the initial weights to all shards. After FAILED_PRECONDITION, which says that the grant
  /// has ended, the client can be used on.
  absl::Status Initialize(uint64_t grant, std::span<const float> weights);

  /// Prepares the slot's next gradient: waits for the answers to its last push, and pulls weights,
  /// excuses the worker from rounds and releases weights as needed. Fails with the first failure of
  /// any call, see push_verdict.h.
  absl::StatusOr<Step> Advance(uint32_t slot = 0) override;

  /// For a caller that keeps its weights, just before BeginPush, or one that has not used the
  /// weights of Advance for long: waits for the newest weights that the slot's next push can be
  /// relative to, and returns the slot's next action, which is Advance's unless the weights show
  /// that its batches are not wanted any more.
  absl::StatusOr<Step> FetchForPush(uint32_t slot);

  /// With free lanes, after Advance has named batches and before their BeginPush (Advance itself
  /// takes a slot's first weights so, and waits for them): copies the newest
  /// weights that have come into the slot's, and the slot's push is then relative to them. The
  /// listener hears of all weights, as if all had arrived. REQUIRES: the slot expects weights
  /// (ModelArenas::ExpectWeights).
  absl::Status TakeNewest(uint32_t slot);
  bool has_free_lanes() const { return newest_ != nullptr; }

  /// For a caller that keeps its weights: returns the ranges of the shards at which pushes had no
  /// effect since the last call, because they dropped one, or refused it as too old. Complete after
  /// Advance.
  std::vector<ParameterRange> TakeRangesWithoutEffect();

  /// Announces the gradient of the batches that Advance named; lanes begin to send the parts that
  /// the feed reports as final. The feed may be used until the push is finished or aborted, one of
  /// which must follow.
  GradientFeed& BeginPush(uint32_t slot, const Gradient& gradient) override;

  /// Completes the push: the whole gradient is final, and it counts. The shards write the trailer's
  /// loss to their push logs.
  absl::Status FinishPush(uint32_t slot, const PushTrailer& trailer) override;

  /// Pushes the values of these shards ahead of the others of the same gradient. BeginPush then
  /// begins the rest; until that is finished or aborted, Advance, FetchForPush and OnNews may not
  /// be called. The values are final, and they count whether or not the rest does. REQUIRES:
  /// one slot; the shards are among ShardsToPush().
  absl::Status PushPart(const Gradient& gradient, const std::vector<ShardId>& shards,
                        const PushTrailer& trailer);

  /// Returns the shards whose parts of the gradient were not pushed ahead. All of them, unless the
  /// caller is between PushPart and the end of that push.
  std::vector<ShardId> ShardsToPush() const;

  /// Returns the ranges of the shards of which new weights have arrived, in full, since the last
  /// call. REQUIRES: nothing is under way, see Drain().
  std::vector<ParameterRange> TakeLanded();

  /// Aborts the push: the gradient must not count, except for parts that were pushed ahead. Advance
  /// names batches again, unless they are skipped.
  void AbortPush(uint32_t slot) override;

  /// Waits until everything that was begun is done: all pushes are answered, and all weights have
  /// arrived.
  absl::Status Drain() override;

  /// Marks the batches of the slot's aborted push as done without a gradient, because their values
  /// are unusable (not finite). Waits for the answers to older pushes.
  void Skip(uint32_t slot) override;

  absl::Status OnNews(const WorkNews& news) override;
  void OnOrders(const Orders& orders) override;
  void Rest() override;
  WorkWish wish() const override;
  Done done() const override;

  /// See WorkerCore. No answer to such a push brings weights to compute from.
  bool goes_on() const override;

  Version version(ShardId shard, uint32_t slot = 0) const;

  const ShardMap& map() const { return group_.map(); }

  /// Returns the first answer to the newest push of each shard; the defaults before that.
  std::vector<PushReply> replies() const;

  /// Returns the number of pushes that the shard has taken of this worker, in its newest
  /// generation.
  uint64_t taken_pushes(ShardId shard) const {
    MutexLock lock(mutex_);
    return Value(session_.core().sequence(shard)) - 1;
  }

  /// See PushEncoders::errors. REQUIRES: nothing is under way, see Drain().
  std::vector<std::span<float>> encoding_errors() { return encoders_.errors(); }

  /// Returns the transfers that ended since the last call, oldest first.
  std::vector<Transfer> TakeTransfers() override;

 private:
  /// The values of a gradient that are pushed to these shards at once.
  struct Part {
    Part(std::vector<ShardId> to, const Gradient& gradient, const ShardMap& map)
        : shards(std::move(to)),
          feed(map.parameters(), gradient.last_change),
          under_way(static_cast<uint32_t>(shards.size())),
          transfer{gradient.step, std::vector<LaneTimes>(map.shards())} {}

    const std::vector<ShardId> shards;
    GradientFeed feed;

    // Guarded by the client's mutex.
    uint32_t under_way;  // Lanes that have not finished.
    Transfer transfer;
  };

  /// One gradient that is being pushed: its parts, of which the last is the newest. Owned by its
  /// slot, until that begins another, and by the lanes that work on it.
  using Push = std::vector<std::unique_ptr<Part>>;

  absl::Status Pull(uint32_t slot, const WorkerCore::PullShards& action);

  /// Tells shards that no gradient comes, and takes weights if `pull` is set.
  absl::Status PushNothing(uint32_t slot, const std::vector<ShardId>& shards, bool pull);

  /// Begins the part of the slot's push to the shards that it has not gone to, or to these of them.
  GradientFeed& BeginPart(uint32_t slot, const Gradient& gradient,
                          std::optional<std::vector<ShardId>> shards = std::nullopt);

  // These run in a lane.
  absl::Status ServePush(ShardClient& shard, uint32_t slot, Part& part);
  absl::Status ExchangePush(ShardClient& shard, uint32_t slot, Part& part);

  /// Runs the exchange to its end and reports each answer to the session.
  absl::Status Follow(const ShardClient& shard, uint32_t slot, ShardExchange& exchange);

  WeightsArrival ArrivalOf(const ShardClient& shard, uint32_t slot) const {
    return shard.ArrivalOf(slots_[slot].weights, slots_[slot].listener);
  }

  std::vector<ParameterRange> RangesOf(const std::set<ShardId>& shards) const;

  void AwaitLanes() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Fail(const absl::Status& status);

  // Constant after construction.
  const bool changes_weights_;  // The caller, between their arrival and the push.
  const std::vector<Slot> slots_;

  /// Whether pushes are sent and weights arrive while the caller computes.
  const bool overlaps_;

  PushEncoders encoders_;  // Each is used by its shard's lane.

  std::unique_ptr<NewestWeights> newest_;  // Null without free lanes.

  std::vector<std::shared_ptr<Push>>
      pushes_;  // The newest of each slot; its pointer is the owner's.

  std::vector<bool> follows_;  // By slot: it has taken weights of newest_.

  mutable Mutex mutex_;
  CondVar changed_;
  WorkerSession session_ ABSL_GUARDED_BY(mutex_);
  uint32_t lanes_under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  FirstFailure failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<Transfer> transfers_ ABSL_GUARDED_BY(mutex_);

  ShardGroup group_;  // Last, so that its lanes end before the members that they use.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_PARAMETER_CLIENT_H_
