#ifndef SLIPSTREAM_SERVER_DATA_PLANE_PUSH_ASSEMBLY_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_PUSH_ASSEMBLY_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/kernels/chunk_hash.h"
#include "common/kernels/segments.h"
#include "common/local/shared_arena.h"
#include "common/wire/values_codec.h"
#include "server/core/shard/shard_machine.h"
#include "server/data_plane/update_draft.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// The received values of one push.
struct PushPayload {
  /// Ordered by offset, without a gap. The log may share them.
  std::vector<std::shared_ptr<const ReceivedValues>> pieces;
  uint64_t bytes = 0;

  /// The draft of an update by this gradient alone, which has seen every value. Null if none was
  /// begun.
  std::shared_ptr<UpdateDraft> draft;

  /// The weights that the gradient was computed from. Null if it needs no compensation by them.
  Weights base;
};

/// Collects one push, chunk by chunk in any order. The pass over the values that is needed anyway
/// finds out whether they are finite and what their checksum is. Nothing has an effect before the
/// push is complete; meanwhile the values may go into a draft that can be thrown away, see
/// update_draft.h.
///
/// The checksum is the sum, modulo 2^64, of the chunks' XXH3 with their offsets as seeds. So it
/// depends on the values, their places and how the push was cut, but not on the order of arrival.
///
/// Not thread-safe: one owner.
class PushAssembly {
 public:
  /// `push`: the name of the push from now on. `draft` may be null.
  explicit PushAssembly(const PushHeader& header, PushId push = {},
                        std::shared_ptr<UpdateDraft> draft = nullptr);

  /// Makes a push that was complete before, with these facts and values, which are not looked at
  /// again. `pieces` may be missing if the payload is not wanted. REQUIRES: the facts are those of
  /// a complete push.
  PushAssembly(ShardMachine::PushFacts facts,
               std::vector<std::shared_ptr<const ReceivedValues>> pieces);

  /// Takes the values from `offset` on. Fails, and the push cannot be completed any more, if some
  /// of them came before, are beyond the announced count, or come in too many small chunks.
  absl::Status Add(uint64_t offset, ReceivedValues values);

  /// Does the same for values that are not copied yet: each is loaded once, in the pass that looks
  /// at it and keeps a copy.
  absl::Status AddCopy(uint64_t offset, const UnreadValues& unread);

  /// Notes what came with a chunk; that of the last values counts. Ignores a loss that is not
  /// finite.
  void NoteTrailer(const PushTrailer& trailer) {
    facts_.header.trailer = trailer;
    if (trailer.loss && !std::isfinite(*trailer.loss)) facts_.header.trailer.loss.reset();
  }

  bool is_complete() const { return facts_.values_received == facts_.header.count; }

  /// Returns whether only one chunk, at the beginning, is missing. An honest sender holds that
  /// chunk back until its whole step is known to be finite, and the step may take long.
  bool awaits_trailer() const;

  /// Names for people the first values that have not come: "values 8 to 15". REQUIRES:
  /// !is_complete().
  std::string Missing() const;

  const PushHeader& header() const { return facts_.header; }
  PushId push() const { return facts_.push; }

  /// REQUIRES: is_complete().
  ShardMachine::PushFacts Facts() const;
  PushPayload TakePayload();

  /// Releases the draft's buffers now.
  void CancelDraft();

 private:
  /// Counts the values if their place is free.
  absl::Status TakePlace(uint64_t offset, uint64_t count);
  void Keep(uint64_t offset, ReceivedValues values);

  /// Run the passes over values that have come, block by block while the cache holds them.
  void Examine(uint64_t offset, const Segments& values);
  void CopyAndExamine(uint64_t offset, const UnreadValues& from, std::span<float> to);
  void ExamineBlock(uint64_t offset, const Segments& block);
  absl::Status CheckPlace(uint64_t offset, uint64_t count) const;
  void Assemble();

  ShardMachine::PushFacts facts_;
  std::map<uint64_t, ReceivedValues> pieces_;  // By offset; disjoint. Empty once complete.
  PushPayload payload_;
  ChunkHash hash_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_PUSH_ASSEMBLY_H_
