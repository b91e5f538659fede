#ifndef SLIPSTREAM_WORKER_CLIENT_PUSH_ENCODER_H_
#define SLIPSTREAM_WORKER_CLIENT_PUSH_ENCODER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/base/encoding.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/values_codec.h"

namespace slipstream {

/// Encodes the gradients of one slot on their way to one shard. Each value is encoded once, however
/// often its push is sent: a repetition has to bring the same bytes.
///
/// Where the encoding feeds its error back, a gradient g goes out as q = C(g + e), and what this
/// leaves, g + e − q, becomes e once the push counts (APPLIED or BUFFERED, or a DUPLICATE of one
/// that did). A push that does not count leaves e as it was.
///
/// Not thread-safe: one owner, the shard's lane.
class PushEncoder {
 public:
  /// `values`: how many the shard has.
  PushEncoder(Encoding encoding, size_t values);

  Encoding encoding() const { return encoding_; }

  /// Another gradient follows; the bytes of the last one are needed no more.
  void Begin();

  /// The bytes of the gradient's values from `begin` up to `end`. They stay as they are until
  /// Begin, and after that for as long as somebody holds their owner. REQUIRES: `gradient` is the
  /// shard's; chunks come from the last to the first and begin where a block does, and those that
  /// come again are cut as before.
  LentBytes Encode(std::span<const float> gradient, size_t begin, size_t end);

  /// The push was answered so; heard again, it changes nothing.
  void OnOutcome(const PushReply& reply);

 private:
  void EncodeChunk(std::span<const float> gradient, size_t begin, size_t end);

  /// Encodes a few values with the errors that are to be made up for, and notes theirs.
  void EncodeWithError(std::span<const float> gradient, size_t begin, size_t end);
  std::span<std::byte> BytesOf(size_t begin, size_t end);

  const Encoding encoding_;
  const size_t values_;
  std::shared_ptr<std::byte[]> bytes_;
  size_t encoded_from_;      // Of the present gradient; nothing of it is encoded before.
  bool is_settled_ = false;  // It counts, and what it lost is noted.

  // Empty unless errors are fed back: e, and what it becomes if the present gradient counts.
  std::vector<float> error_;
  std::vector<float> next_error_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_PUSH_ENCODER_H_
