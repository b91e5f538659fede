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

/// The stream on which a worker makes its exchanges with one shard, one after another. The messages
/// travel over the connection, or beside it where worker and shard share memory; the caller does
/// not need to know which.
///
/// After a failure of any method the stream has to be closed. Every wait has a deadline from the
/// options.
///
/// Not thread-safe: one owner; other threads may throw its CancelSwitch.
class ExchangeStream {
 public:
  /// Everything that is borrowed must outlive the stream.
  ExchangeStream(ShardChannel& channel, const ShardOptions& options, CancelSwitch& cancel);

  /// Opens the stream unless it is open, and agrees on shared memory with a shard on this machine.
  /// If the shard's server has moved, opens it anew at the new address. REQUIRES: no push is under
  /// way.
  /// Also fails with UNAVAILABLE if the configuration demands shared memory and none is available
  /// now.
  absl::Status Open();
  bool is_open() const { return call_ != nullptr; }

  /// True until a message of a push has been sent on this stream: the shard does not know yet which
  /// member the stream belongs to.
  bool is_unannounced() const { return !has_sent_; }

  /// Ends the stream; a push that is under way has no effect. The next Open starts a new stream.
  void Close();

  /// Returns where the shard reads these values of the arena; nothing if they have to be sent.
  absl::StatusOr<std::optional<SharedValues>> Place(std::span<const float> values);

  /// Sends a message of a push.
  absl::Status Send(const grpc::ByteBuffer& message, RawCall::Next next);

  /// Returns the next message of the answer. DEADLINE_EXCEEDED if none arrives within the options'
  /// answer timeout.
  absl::StatusOr<ExchangeChunk> Receive();

  /// Copies the weights of an answer's message, in shared memory or not, to their place in
  /// `weights`.
  absl::Status Take(const ExchangeChunk& chunk, WeightsArrival& weights);

  /// Lets the transport work for `duration`, though this stream waits for no message.
  void Poll(absl::Duration duration);

 private:
  /// Agrees on shared memory; tried once per stream.
  absl::Status ShareMemory();
  absl::StatusOr<grpc::ByteBuffer> ReceiveMessage();
  absl::Status CopyShared(const ExchangeChunk& chunk, WeightsArrival& weights);

  /// Returns the failure of an exchange whose shared memory failed. If the transport is chosen
  /// automatically, it is one that is retried, and from then on without shared memory.
  absl::Status SharingFailure(const absl::Status& why);

  // Constant after construction.
  const ShardOptions& options_;

  ShardChannel& channel_;
  CancelSwitch& cancel_;
  std::unique_ptr<RawCall> call_;     // Null unless open.
  std::unique_ptr<SharedLink> link_;  // Null unless that call shares memory.
  bool has_tried_to_share_ = false;   // Whether this call has asked for shared memory.
  bool has_sent_ = false;             // Whether a message of a push was sent on this call.
  bool answers_on_call_ = true;       // Whether the rest of this answer comes over the call.
  // Sharing failed once and is optional, so it is not tried again.
  bool has_given_up_sharing_ = false;
  std::string told_;  // The text last logged about sharing.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_EXCHANGE_STREAM_H_
