#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_CLIENT_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_CLIENT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/local/shared_arena.h"
#include "common/process/steady_time.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/chunk_wire.h"
#include "worker/client/arena_loan.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/raw_call.h"
#include "worker/client/shard_channel.h"
#include "worker/client/shard_exchange.h"
#include "worker/client/shared_link.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {

/// The calls to one shard, over a connection of its own, see shard_channel.h.
///
/// Each method is one try: what to repeat is the caller's to say. Pushes travel as pieces borrowed
/// from the caller's arena, which a shard of this machine may take them from itself, or encoded
/// piece by piece, and weights are written straight into the arena. Exchanges share one stream,
/// which is opened when the first needs it and again after a failure; a push that must not count is
/// ended with its stream.
///
/// Not thread-safe: one owner; other threads may throw its switch.
class ShardClient {
 public:
  struct Options {
    /// Payload bytes of one message, were they fp32, both ways.
    size_t chunk_bytes = size_t{1} << 20;

    /// The encoding of weights that are for training. Others are exact.
    Encoding weights_encoding = Encoding::kFp32;

    /// A message that the peer has not taken in by then is given up.
    absl::Duration write_timeout = absl::Seconds(30);

    /// So is an answer that has not come, and the call is worth another try for any number of
    /// times: rounds wait for the slowest member, a dead peer is found by the connection's own
    /// probes, and a lost lease by the heartbeat.
    absl::Duration answer_timeout = absl::Minutes(10);

    /// What all gradients lie in, if shards of this machine may take them from there, as they may
    /// where WireSpec::may_share_memory; else null. Must outlive the client.
    const SharedArena* arena = nullptr;
    ShardChannel::Options channel;
  };

  /// `address` is host:port. `cancel` must outlive the client.
  ShardClient(std::string address, const Options& options, CancelSwitch& cancel);

  /// Sends the initial weights under a grant. `values` must stay as they are until AwaitReturn.
  absl::Status Initialize(const InitializeHeader& header, std::span<const float> values);

  /// Asks for what the options say of weights and puts the answer in place.
  absl::Status Pull(PullRequest request, WeightsArrival& weights);

  /// Pushes the chunks of the options' size from the last to the first, each as soon as it is
  /// final, and waits for the answer and for its weights, if the header asks for them. The answer
  /// may be any, also RETRY_LATER. ABORTED if the gradient was: what was sent has no effect then.
  absl::StatusOr<PushReply> Exchange(ShardExchange& exchange);

  /// Waits until gRPC has dropped all values that it was lent; they may be changed then.
  absl::Status AwaitReturn(absl::Duration timeout);

  /// The try that failed last did so because no answer came in time to what the shard had taken: it
  /// is there, and may wait for others.
  bool is_answer_late() const { return is_answer_late_; }

  const std::string& address() const { return address_; }

  /// Shows whether the shard's machine can be reached, by whichever path calls go.
  grpc::Channel& channel() { return channel_.tcp(); }

 private:
  absl::Time WriteDeadline() const { return SteadyNow() + options_.write_timeout; }
  absl::Time AnswerDeadline() const { return SteadyNow() + options_.answer_timeout; }

  absl::StatusOr<std::unique_ptr<RawCall>> Start(const std::string& method);

  /// Agrees on shared memory with a shard on this machine, once for each stream. Fails if the
  /// stream did, or the path was chosen by name and there is none.
  absl::Status ShareMemory();
  absl::Status WritePush(ShardExchange& exchange);

  /// The message that brings these values, or says where they are.
  absl::StatusOr<grpc::ByteBuffer> PushMessage(const ShardExchange& exchange, uint64_t begin,
                                               uint64_t end, bool is_first);

  /// What follows the chunk of a push that begins at `begin`.
  RawCall::Next AfterChunk(const ShardExchange& exchange, size_t begin) const;
  absl::Status Write(const grpc::ByteBuffer& message, RawCall::Next next);
  absl::StatusOr<PushReply> ReadAnswer(ShardExchange& exchange);

  /// The next message of an answer. `is_on_stream`: all are on the stream, as soon as one was.
  absl::StatusOr<grpc::ByteBuffer> ReadMessage(bool& is_on_stream);

  /// Puts the weights of an answer in place, wherever they are.
  absl::Status TakeWeights(const ExchangeChunk& chunk, WeightsArrival& weights);
  absl::Status CopyShared(const ExchangeChunk& chunk, WeightsArrival& weights);

  /// Why `call`, which ended early, did; never OK.
  absl::Status Failure(RawCall& call);

  /// The same where it ended instead of answering.
  absl::Status NoAnswer(RawCall& call);
  absl::Status Named(const absl::Status& status) const;

  /// What becomes of the exchange whose shared memory failed: it is tried again, without where that
  /// is allowed.
  absl::Status SharingFailure(const absl::Status& why);

  // Constant after construction.
  const std::string address_;
  const Options options_;

  CancelSwitch& cancel_;
  ShardChannel channel_;
  std::unique_ptr<RawCall> exchange_;  // The stream of exchanges, where it is open.
  std::unique_ptr<SharedLink> link_;   // Of that stream, if there is one.
  bool has_given_up_sharing_ = false;  // For good: it failed, and may be done without.
  bool has_tried_to_share_ = false;    // On that stream.
  bool is_answer_late_ = false;        // In the last try.
  std::string told_;                   // What was logged last.
  ArenaLoan loan_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_CLIENT_H_
