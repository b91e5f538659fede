#ifndef SLIPSTREAM_WORKER_CLIENT_SUBSCRIPTION_H_
#define SLIPSTREAM_WORKER_CLIENT_SUBSCRIPTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "proto/coordinator.pb.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/server_addresses.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_group.h"

namespace slipstream {

/// A reader that follows the versions of a run's weights, and is no member of it:
///
///   Subscription subscription(options, sleeper, cancel);
///   subscription.Connect();                               // Waits for a model.
///   std::vector<float> weights(subscription.layout().parameters());
///   while (auto state = subscription.Next(weights); state.ok() && state->has_value()) …
///
/// Where the versions of the shards belong together (Stamp), a state is exactly one of the whole
/// model, and its tensors' checksums are those of the shards; elsewhere it has a version of each
/// shard. A thread of its own tells the coordinator what the reader holds, so that it appears in
/// the status, with its lag.
///
/// Not thread-safe: one owner; other threads may throw its CancelSwitch.
class Subscription {
 public:
  struct Options {
    /// host:port of server 0.
    std::string coordinator;

    /// For people: visible ASCII characters.
    std::string name = "reader";

    /// The most versions that the reader wants to lag behind; empty if it does not matter. The
    /// status shows whether it does, and with readers.on_lag: wait, workers wait for the reader.
    std::optional<uint64_t> lag_max;
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  };

  /// One state of the model.
  struct State {
    /// Absent where the shards' versions do not belong together.
    std::optional<Stamp> stamp;
    std::vector<Version> versions;  // By shard.

    /// The publisher's number of it; 0 if it was not published.
    uint64_t label = 0;

    /// The number of examples whose gradients are part of it, at the shard that has seen the
    /// fewest.
    uint64_t examples = 0;

    /// The number of versions that shard 0 had published since, when all of this one had come.
    uint64_t lag = 0;
  };

  /// `cancel` must outlive the subscription. All waits end once it is thrown and `sleeper` returns
  /// false.
  Subscription(Options options, Sleeper sleeper, CancelSwitch& cancel);

  /// Leaves the list of readers.
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  /// Waits until the run has a model. UNAVAILABLE: the coordinator cannot be reached; ABORTED: the
  /// run failed; RESOURCE_EXHAUSTED: there are too many readers; CANCELLED.
  absl::Status Connect();

  /// REQUIRES: Connect succeeded.
  const TensorLayout& layout() const { return layout_; }

  /// Waits for a state that is newer than the one returned last, takes the newest, and fills
  /// `weights`, which holds all values in the layout's order. Returns nothing once the run is over
  /// and there is no newer one. What was in `weights` is lost. Fails as Connect does; with
  /// DATA_LOSS if values are not those of the shards, naming the tensor.
  ///
  /// `held`: the values of the state returned last, elsewhere than `weights`, if the caller still
  /// has them; shards that keep that version then send what has changed, if that is little.
  absl::StatusOr<std::optional<State>> Next(std::span<float> weights,
                                            std::span<const float> held = {});

 private:
  struct Parts {
    std::vector<WeightsHeader> headers;  // By shard.
    std::vector<Version> newest;
    uint64_t bytes = 0;
    bool has_lagged = false;

    /// Whether all shards that were asked are on this machine.
    bool are_local = true;
    absl::Status mismatch;  // DATA_LOSS if values are not those of a shard.
  };

  absl::Status Await(v1::FollowReply& reply);

  /// The weights of one shard, by their version.
  using Held = std::pair<Generation, Version>;

  static Held Of(const WeightsHeader& header) { return {header.generation, header.version}; }

  /// Returns whether the weights of shard 0 are newer than those that were returned last. Those of
  /// a later generation are, whatever their version.
  bool IsNews(const WeightsHeader& first) const {
    return held_.empty() ? first.version >= first_ : Of(first) > held_.front();
  }
  class Turn;

  /// The memory of one state, and that of the last, which may be empty.
  struct Memory {
    std::span<float> weights;
    std::span<const float> held;
  };

  absl::Status Take(const Memory& memory, Parts& parts);

  /// `first`: the header of shard 0's weights, of which the others' parts are pulled; null for
  /// shard 0.
  absl::Status Pull(ShardClient& shard, const WeightsHeader* first, const Memory& memory,
                    Turn& turn, Mutex& mutex, Parts& parts);

  /// Returns the request for the shard's part of the state that `first` names.
  PullRequest RequestFor(ShardId shard, const WeightsHeader* first, const Memory& memory) const;
  absl::Status CheckTensors(const ShardClient& shard, const WeightsTrailer& trailer,
                            std::span<const float> weights) const;

  /// Waits as long as this reader has to between two pulls.
  absl::Status AwaitTurn();
  bool HasFinished();

  /// Returns whether the run is over, when shard 0 has nothing newer; CANCELLED after an
  /// interruption.
  absl::StatusOr<bool> IsOver();
  absl::StatusOr<v1::FollowReply> Tell();

  /// Notes what a reply says of the run and its servers; ends all calls if it is another run.
  void Hear(const v1::FollowReply& reply);

  /// Returns the failure behind one of `status`, if there is another.
  absl::Status Cause(const absl::Status& status);
  void RunReports();

  ServerAddresses servers_;

  // Constant after Connect.
  const Options options_;
  const Sleeper sleeper_;
  CancelSwitch& cancel_;
  const CoordinatorClient coordinator_;
  TensorLayout layout_;
  ShardMap map_;
  absl::Duration lease_;
  std::unique_ptr<ShardGroup> shards_;
  Version first_{};  // The first version of shard 0 that is read.
  uint64_t run_ = 0;
  uint64_t instance_ = 0;

  Mutex mutex_;
  CondVar changed_;
  v1::FollowRequest report_ ABSL_GUARDED_BY(mutex_);

  /// Set if the coordinator has not been told the newest figures.
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_listed_ ABSL_GUARDED_BY(mutex_) = false;  // The coordinator knows this reader.
  v1::Phase phase_ ABSL_GUARDED_BY(mutex_) = v1::PHASE_UNSPECIFIED;  // The one heard of last.
  bool is_replaced_ ABSL_GUARDED_BY(mutex_) = false;  // The servers have another run.
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;

  absl::Time began_;
  std::vector<Held> held_;  // By shard; empty before the first state.

  /// The next pull is not made earlier if shards are on other machines.
  absl::Time next_pull_;
  std::thread reports_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SUBSCRIPTION_H_
