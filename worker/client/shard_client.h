#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_CLIENT_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/aggregator_link.h"
#include "worker/client/arena_loan.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/raw_call.h"
#include "worker/client/retries.h"
#include "worker/client/shard_channel.h"
#include "worker/client/shard_connection.h"
#include "worker/client/shard_options.h"
#include "worker/client/weights_arrival.h"
#include "worker/core/push_tries.h"

namespace slipstream {

/// A worker's client of one shard, over a connection of its own (shard_connection.h), and of the
/// aggregator before that shard, if there is one. Pushes are made by ShardExchange.
///
/// A call is repeated until its answer is final or the shard has been unreachable for too long.
/// Values to be sent are borrowed from the caller's arena, and received weights are written
/// straight into it.
///
/// Not thread-safe: one owner; other threads may throw its CancelSwitch.
class ShardClient {
 public:
  /// The shard's number, its address, and its part of the model.
  struct Place {
    ShardId shard{0};
    std::string address;  // host:port, where its server was at first.
    ParameterRange range;

    /// The address of the aggregator of the worker's group; empty if there is none.
    std::string aggregator = {};
  };

  /// `cancel` must outlive the client.
  ShardClient(Place place, const ShardOptions& options, Sleeper sleeper, CancelSwitch& cancel);

  /// Sends the shard's part of the initial weights under a grant. `weights` holds the weights of
  /// the whole model.
  absl::Status Initialize(InitializeHeader header, std::span<const float> weights);

  /// The facts about weights that were pulled.
  struct Pulled {
    WeightsHeader header;

    /// Set if the request asked for it.
    std::optional<WeightsTrailer> trailer;

    /// The bytes of the values as they were encoded, of all tries.
    uint64_t bytes = 0;
  };

  /// Pulls the requested weights into `weights`. `on_header`, if it is set, is called with the
  /// header as soon as that comes, before the values; again if the call had to be repeated.
  /// OUT_OF_RANGE (LAGGED) if the weights are not kept (any longer).
  ///
  /// If there is an aggregator, a pull that does not train goes there. If that fails, the same pull
  /// goes to the shard.
  absl::StatusOr<Pulled> Pull(PullRequest request, WeightsArrival weights,
                              const std::function<void(const WeightsHeader&)>& on_header = {});

  /// Returns a receiver that writes the shard's weights into `weights`, an arena of the whole
  /// model. `listener` may be null.
  WeightsArrival ArrivalOf(std::span<float> weights, WeightsListener* listener) const;

  /// Returns whether the shard is reached by its local socket, once a call has been made.
  bool is_local() const { return connection_.channel().is_local(); }

  ShardId shard() const { return place_.shard; }
  const std::string& address() const { return connection_.channel().address(); }

  /// Returns "shard 1 at host:port", for messages to people.
  const std::string& name() const { return peer().name; }
  ParameterRange range() const { return place_.range; }

  // For ShardExchange:

  const ShardOptions& options() const { return options_; }
  ShardConnection& connection() { return connection_; }

  /// Null if there is no aggregator.
  AggregatorLink* aggregator() { return aggregator_ ? &*aggregator_ : nullptr; }

  /// Returns what decides the tries of a push with this header, and with values or without.
  PushTries NewTries(const PushHeader& header, bool has_values);

  const CalledPeer& peer() const { return connection_.channel().peer(); }

  /// The function that waits between tries. It returns false, without waiting, once all calls were
  /// cancelled.
  const Sleeper& sleeper() const { return sleeper_; }

  /// Waits until gRPC has dropped all values that it was lent; then they may be changed.
  absl::Status AwaitReturn();

  /// Returns `failure` as it is reported to the owner: with the shard's name, or as CANCELLED if
  /// all calls were cancelled and it no longer matters. A transient failure is returned unchanged,
  /// because it was given up and names the shard already.
  absl::Status Final(const absl::Status& failure) const;

  /// True once all calls were cancelled.
  bool is_stopped() const { return cancel_.thrown(); }

 private:
  Retries NewRetries();

  // These make one try.
  absl::Status Send(const InitializeHeader& header, std::span<const float> values,
                    Retries& retries);
  absl::Status Ask(ShardChannel& channel, const PullRequest& request, WeightsArrival& weights,
                   Pulled& pulled, const std::function<void(const WeightsHeader&)>& on_header,
                   Retries& retries);

  /// Returns whether the aggregator has answered; false, too, if it was not to be asked.
  bool AskAggregator(const PullRequest& request, WeightsArrival& weights, Pulled& pulled,
                     const std::function<void(const WeightsHeader&)>& on_header, Retries& retries);

  /// Returns why `call`, over `channel`, ended without an answer; never OK.
  absl::Status NoAnswer(ShardChannel& channel, RawCall& call, Retries& retries);

  // Constant after construction.
  const Place place_;
  const ShardOptions options_;
  const Sleeper sleeper_;

  CancelSwitch& cancel_;
  ArenaLoan loan_;  // Has the pieces that both connections lend.
  ShardConnection connection_;
  std::optional<AggregatorLink> aggregator_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_CLIENT_H_
