#ifndef SLIPSTREAM_WORKER_CLIENT_EXCHANGE_STREAM_H_
#define SLIPSTREAM_WORKER_CLIENT_EXCHANGE_STREAM_H_

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/wire/chunk_wire.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/raw_call.h"
#include "worker/client/shard_channel.h"
#include "worker/client/shard_options.h"
#include "worker/client/shared_link.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {

/// The stream on which a worker's exchanges with one shard follow each other. Its messages go over
/// the connection, or beside it where worker and shard share memory: whoever exchanges need not
/// know which.
///
/// After a failure from any of its methods it has to be closed. Each wait has a deadline of the
/// options'.
///
/// Not thread-safe: one owner; other threads may throw its switch.
class ExchangeStream {
 public:
  /// `address`, host:port, is for people. What is borrowed must outlive it.
  ExchangeStream(std::string address, ShardChannel& channel, const ShardOptions& options,
                 CancelSwitch& cancel);

  /// Opens the stream unless it is open, and agrees on shared memory with a shard on this machine.
  /// UNAVAILABLE also if the way was chosen by name and there is none now.
  absl::Status Open();
  bool is_open() const { return call_ != nullptr; }

  /// The shard has not heard on this stream for whom it is.
  bool is_unannounced() const { return !has_sent_; }

  /// Ends the stream; a push under way has no effect. The next Open starts over.
  void Close();

  /// Where the shard takes these values of the arena from; nothing if they have to be sent.
  absl::StatusOr<std::optional<SharedValues>> Place(std::span<const float> values);

  /// A message of a push.
  absl::Status Send(const grpc::ByteBuffer& message, RawCall::Next next);

  /// The next message of the answer. DEADLINE_EXCEEDED if none has come within the options' time.
  absl::StatusOr<ExchangeChunk> Receive();

  /// Puts the weights of such a message in place, wherever they are.
  absl::Status Take(const ExchangeChunk& chunk, WeightsArrival& weights);

  /// Lets the transport work for this long although nothing is waited for.
  void Poll(absl::Duration duration);

 private:
  /// Agrees on shared memory, once for each stream.
  absl::Status ShareMemory();
  absl::StatusOr<grpc::ByteBuffer> ReceiveMessage();
  absl::Status CopyShared(const ExchangeChunk& chunk, WeightsArrival& weights);

  /// The failure of an exchange whose shared memory failed: one that is tried again, without shared
  /// memory where that is allowed.
  absl::Status SharingFailure(const absl::Status& why);

  // Constant after construction.
  const std::string address_;
  const ShardOptions& options_;

  ShardChannel& channel_;
  CancelSwitch& cancel_;
  std::unique_ptr<RawCall> call_;      // Null unless open.
  std::unique_ptr<SharedLink> link_;   // Of that call, if memory is shared.
  bool has_tried_to_share_ = false;    // On that call.
  bool has_sent_ = false;              // A message of a push, on that call.
  bool answers_on_call_ = true;        // What is still to come of this answer does.
  bool has_given_up_sharing_ = false;  // For good: it failed, and may be done without.
  std::string told_;                   // What was logged last.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_EXCHANGE_STREAM_H_
