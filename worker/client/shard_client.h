#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_CLIENT_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_CLIENT_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/arena_loan.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/exchange_stream.h"
#include "worker/client/raw_call.h"
#include "worker/client/retries.h"
#include "worker/client/shard_channel.h"
#include "worker/client/shard_options.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {

/// One shard as a worker reaches it, over a connection of its own, see shard_channel.h. Pushes are
/// ShardExchange's.
///
/// A call is repeated until it is answered for good or the shard has been out of reach for too
/// long. Values to be sent are borrowed from the caller's arena, and weights are written straight
/// into it.
///
/// Not thread-safe: one owner; other threads may throw its switch.
class ShardClient {
 public:
  /// Which shard it is, where, and which part of the model it holds.
  struct Place {
    ShardId shard{0};
    std::string address;  // host:port
    ParameterRange range;
  };

  /// `cancel` must outlive the client.
  ShardClient(Place place, const ShardOptions& options, Sleeper sleeper, CancelSwitch& cancel);

  /// Sends the initial weights, of which `weights` are the whole model's, under a grant.
  absl::Status Initialize(InitializeHeader header, std::span<const float> weights);

  /// Puts what is asked for in place and returns its header.
  absl::StatusOr<WeightsHeader> Pull(PullRequest request, WeightsArrival weights);

  /// A place for the shard's weights in an arena of the whole model's. `listener` may be null.
  WeightsArrival ArrivalOf(std::span<float> weights, WeightsListener* listener) const;

  ShardId shard() const { return place_.shard; }
  const std::string& address() const { return place_.address; }
  ParameterRange range() const { return place_.range; }

  // For exchanges:

  const ShardOptions& options() const { return options_; }
  ExchangeStream& stream() { return stream_; }

  /// Starts to count the tries of a call.
  Retries NewRetries();

  /// To be kept by whoever has a part of the arena sent.
  ArenaLoan& loan() { return loan_; }

  /// Waits until gRPC has dropped all values that it was lent; they may be changed then.
  absl::Status AwaitReturn();

  /// `failure` as its owner hears of it: with the shard's name, or CANCELLED if all calls were
  /// ended, for then it counts no more. A failure that was given up names the shard already.
  absl::Status Final(const absl::Status& failure) const;

  /// True once all calls were ended.
  bool is_stopped() const { return cancel_.thrown(); }

 private:
  // One try each.
  absl::Status Send(const InitializeHeader& header, std::span<const float> values,
                    Retries& retries);
  absl::Status Ask(const PullRequest& request, WeightsArrival& weights, Retries& retries);

  /// Why `call` ended instead of answering; never OK.
  absl::Status NoAnswer(RawCall& call, Retries& retries);

  // Constant after construction.
  const Place place_;
  const std::string name_;
  const ShardOptions options_;
  const Sleeper sleeper_;

  CancelSwitch& cancel_;
  ShardChannel channel_;
  ExchangeStream stream_;
  ArenaLoan loan_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_CLIENT_H_
