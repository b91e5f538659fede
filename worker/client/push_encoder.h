#ifndef SLIPSTREAM_WORKER_CLIENT_PUSH_ENCODER_H_
#define SLIPSTREAM_WORKER_CLIENT_PUSH_ENCODER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/base/encoding.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/values_codec.h"

namespace slipstream {

/// Encodes the gradients of one slot that are pushed to one shard. Each value is encoded once,
/// however often its push is sent, because a repetition has to bring the same bytes.
///
/// Some encodings feed their error back. A gradient g is then sent as q = C(g + e), where C is the
/// encoding and e the error so far. The remaining error, g + e − q, becomes the new e once the push
/// counts (APPLIED or BUFFERED, or a DUPLICATE of one that did). A push that does not count leaves
/// e unchanged. Of a gradient that is clipped by the factor f, shards take f q, and f g + e − f q
/// is what remains.
///
/// Encodings that feed their error back share something among the values of a block, a scale or the
/// choice of the largest. So they send no gradients of frozen tensors, which nobody uses: large
/// ones would take it from the other values of their block. All other encodings send every value.
///
/// Not thread-safe: one owner, the shard's lane.
class PushEncoder {
 public:
  /// `values`: the number of values of the shard. `frozen`: the positions among them whose values
  /// the shard does not use, see FrozenWithin.
  PushEncoder(Encoding encoding, size_t values, std::vector<ParameterRange> frozen = {});

  Encoding encoding() const { return encoding_; }

  /// Starts another gradient; the bytes of the previous one are no longer needed.
  void Begin();

  /// Returns the encoded bytes of the gradient's values from `begin` up to `end`. The bytes stay
  /// unchanged until Begin, and after that as long as somebody holds their owner. REQUIRES:
  /// `gradient` is the shard's part; chunks are asked for from the last to the first, each begins
  /// at an encoding block, and a repeated chunk has the same bounds as before.
  LentBytes Encode(std::span<const float> gradient, size_t begin, size_t end);

  /// Notes the answer to the push, whose gradient was clipped by this factor; the same answer again
  /// changes nothing.
  void OnOutcome(const PushReply& reply, float clip = 1);

  /// The error e, which goes out with the next gradient; empty if this encoding feeds none back.
  std::span<float> error() { return error_; }

 private:
  void EncodeChunk(std::span<const float> gradient, size_t begin, size_t end);

  /// Encodes up to kPieceValues values plus their accumulated errors, and notes the new errors.
  void EncodeWithError(std::span<const float> gradient, size_t begin, size_t end);
  std::span<std::byte> BytesOf(size_t begin, size_t end);

  const Encoding encoding_;
  const size_t values_;
  std::vector<ParameterRange> frozen_;  // Constant after construction.
  std::shared_ptr<std::byte[]> bytes_;
  size_t encoded_from_;      // Values of this gradient from here on are encoded.
  bool is_settled_ = false;  // This gradient counts, and its errors are taken over.

  // Empty unless errors are fed back: e, and its next value if the current gradient counts.
  std::vector<float> error_;
  std::vector<float> next_error_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_PUSH_ENCODER_H_
