#ifndef SLIPSTREAM_SERVER_DATA_PLANE_CHUNKED_ANSWER_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_CHUNKED_ANSWER_H_

#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/encoding.h"
#include "server/data_plane/shard_engine.h"

namespace slipstream {

/// Cuts one answer into messages. Their payloads borrow the version's buffer. If the weights are to
/// be encoded, each message owns its encoded part, which is made when the message is asked for.
///
/// Not thread-safe: one owner.
class ChunkedAnswer {
 public:
  /// The type of the messages: WeightsChunk for a pull, ExchangeReply for an exchange.
  enum class Form { kWeights, kExchange };

  /// `chunk_bytes`: the payload of one message if it were fp32; a positive multiple of 4, rounded
  /// down to whole blocks of the encoding. `shared`:
  /// where the reader finds the weights, so that they are not sent; for an exchange only.
  ChunkedAnswer(Form form, Answer answer, size_t chunk_bytes, Encoding encoding,
                std::optional<SharedWeights> shared = std::nullopt);

  /// Has the last message of pulled weights carry the trailer that `trailer` returns then.
  void SetTrailer(std::function<std::optional<WeightsTrailer>(const Answer&)> trailer) {
    trailer_ = std::move(trailer);
  }

  /// Has these changes sent in place of the values.
  void SendChanges(VersionChanges::Parts changes) { changes_ = std::move(changes); }

  /// Returns the next message; nothing after the last one.
  std::optional<grpc::ByteBuffer> Next();

  /// Returns whether its messages hold values: all of them do, or none.
  bool has_values() const;

  /// Returns how gRPC is to write the last message of Next. Large borrowed values are held back for
  /// the message after them, up to TransportOptions::write_ahead_bytes, so that the thread that
  /// writes to the socket has the next ones at hand. The stream's initial metadata must have been
  /// sent.
  grpc::WriteOptions write_options() const;

  /// Returns how many bytes have to move at most from the end of one write to the end of the next,
  /// for messages with so many bytes of values.
  static size_t AwaitedBytesMax(size_t chunk_bytes);

 private:
  grpc::ByteBuffer NextChanges();

  /// Returns the trailer for the last message of pulled weights, if there is to be one.
  std::optional<WeightsTrailer> TrailerNow() const;

  Form form_;
  Answer answer_;
  size_t chunk_values_;
  Encoding encoding_;
  std::optional<SharedWeights> shared_;
  std::function<std::optional<WeightsTrailer>(const Answer&)> trailer_;  // May be null.
  VersionChanges::Parts changes_;                                        // Null if values are sent.
  size_t changes_sent_ = 0;
  uint64_t sent_ = 0;
  size_t borrowed_bytes_ = 0;  // The bytes that the last message borrows.
  bool is_finished_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_CHUNKED_ANSWER_H_
