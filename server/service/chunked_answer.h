#ifndef SLIPSTREAM_SERVER_SERVICE_CHUNKED_ANSWER_H_
#define SLIPSTREAM_SERVER_SERVICE_CHUNKED_ANSWER_H_

#include <grpcpp/impl/call_op_set.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/encoding.h"
#include "server/service/shard_engine.h"

namespace slipstream {

/// Cuts one answer into messages. Their payloads borrow the version's buffer; if the weights are to
/// be encoded, each message holds its part, made when it is asked for.
///
/// Not thread-safe: one owner.
class ChunkedAnswer {
 public:
  /// What the messages are: WeightsChunk of a pull, ExchangeReply of an exchange.
  enum class Form { kWeights, kExchange };

  /// `chunk_bytes`: payload of one message, were it fp32; a multiple of 4, not 0. `shared`: where
  /// the reader finds the weights without being sent them; of an exchange only.
  ChunkedAnswer(Form form, Answer answer, size_t chunk_bytes, Encoding encoding,
                std::optional<SharedWeights> shared = std::nullopt);

  /// Nothing after the last one.
  std::optional<grpc::ByteBuffer> Next();

  /// Its messages hold values, as many messages as there are.
  bool has_values() const;

  /// How gRPC is to write what Next gave last: large borrowed values are held back for the message
  /// after them, up to TransportOptions::write_ahead_bytes, so that the thread which writes to the
  /// socket has the next ones at hand. The stream's initial metadata must have been sent.
  grpc::WriteOptions write_options() const;

  /// Of a message with so many bytes of values: what has to move, at most, from the end of the
  /// write before it to the end of its own.
  static size_t AwaitedBytesMax(size_t chunk_bytes);

 private:
  Form form_;
  Answer answer_;
  size_t chunk_values_;
  Encoding encoding_;
  std::optional<SharedWeights> shared_;
  uint64_t sent_ = 0;
  size_t borrowed_bytes_ = 0;  // Of the last message.
  bool is_finished_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_CHUNKED_ANSWER_H_
