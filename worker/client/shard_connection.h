#ifndef SLIPSTREAM_WORKER_CLIENT_SHARD_CONNECTION_H_
#define SLIPSTREAM_WORKER_CLIENT_SHARD_CONNECTION_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/chunk_wire.h"
#include "common/wire/values_codec.h"
#include "worker/client/arena_loan.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/raw_call.h"
#include "worker/client/shard_channel.h"
#include "worker/client/shard_options.h"
#include "worker/client/shared_link.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {

/// A worker's connection to one shard, or to the aggregator before it: the channel there, and the
/// stream on which the worker makes its exchanges, one after another. Messages travel over the
/// stream, or beside it where worker and shard share memory; the caller does not need to know
/// which.
///
/// After a failure of any method the stream has to be closed. Every wait has a deadline from the
/// options.
///
/// Not thread-safe: one owner; other threads may throw its CancelSwitch.
class ShardConnection {
 public:
  /// `address` and `shard` are the channel's. `loan` counts the pieces of the arena that are lent
  /// to gRPC. Everything that is borrowed must outlive the connection.
  ShardConnection(std::string address, const ShardOptions& options, ArenaLoan& loan,
                  CancelSwitch& cancel, std::optional<ShardId> shard = {});

  /// For calls beside the stream.
  ShardChannel& channel() { return channel_; }
  const ShardChannel& channel() const { return channel_; }

  /// Opens the stream unless it is open, and agrees on shared memory with a shard on this machine.
  /// If the shard's server has moved, opens it anew at the new address. Also fails with UNAVAILABLE
  /// if the configuration demands shared memory and none is available now. REQUIRES: no push is
  /// under way.
  absl::Status Open();
  bool is_open() const { return call_ != nullptr; }

  /// True until a message of a push has been sent on this stream: the shard does not know yet which
  /// member the stream belongs to.
  bool is_unannounced() const { return !has_sent_; }

  /// Ends the stream; a push that is under way has no effect. The next Open starts a new stream.
  void Close();

  /// A message of a push.
  struct Message {
    std::optional<PushHeader> header = {};  // Set in the push's first.

    /// Some of the push's values, which begin at this one.
    size_t begin = 0;
    std::span<const float> values = {};

    /// The same values, if they are encoded.
    std::optional<LentBytes> encoded = {};
    Encoding encoding = Encoding::kFp32;

    PushTrailer trailer = {};
    RawCall::Next next = RawCall::Next::kWrites;
  };

  /// Sends the message. The shard reads values from the arena if it can; otherwise they are lent to
  /// gRPC.
  absl::Status Send(Message message);

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

  /// Returns the message as the peer decodes it.
  absl::StatusOr<grpc::ByteBuffer> BytesOf(Message message);
  absl::StatusOr<grpc::ByteBuffer> ReceiveMessage();
  absl::Status CopyShared(const ExchangeChunk& chunk, WeightsArrival& weights);

  /// Returns the failure of an exchange whose shared memory failed. If the transport is chosen
  /// automatically, it is one that is retried, and from then on without shared memory.
  absl::Status SharingFailure(const absl::Status& why);

  // Constant after construction.
  const ShardOptions& options_;

  ArenaLoan& loan_;
  CancelSwitch& cancel_;
  ShardChannel channel_;
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

#endif  // SLIPSTREAM_WORKER_CLIENT_SHARD_CONNECTION_H_
