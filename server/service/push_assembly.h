#ifndef SLIPSTREAM_SERVER_SERVICE_PUSH_ASSEMBLY_H_
#define SLIPSTREAM_SERVER_SERVICE_PUSH_ASSEMBLY_H_

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
#include "server/core/shard_machine.h"
#include "server/service/update_draft.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// The received values of one push, where gRPC left them.
struct PushPayload {
  std::vector<ReceivedValues> pieces;  // In order of their offsets, without a gap.
  uint64_t bytes = 0;

  /// Of an update by this gradient alone, where one was begun; it has seen every value.
  std::shared_ptr<UpdateDraft> draft;

  /// The weights that the gradient was computed from, where they are kept; null where it needs no
  /// compensation by them.
  Weights base;
};

/// Collects one push, chunk by chunk in any order, and learns of its values in the pass that they
/// need anyway: are they finite, what is their checksum. Nothing has an effect before the push is
/// complete; what can be thrown away is made of the values meanwhile, see update_draft.h.
///
/// The checksum is the sum, modulo 2^64, of the chunks' XXH3 with their offsets as seeds. So it
/// depends on what came where and on how the push was cut, but not on the order of arrival.
///
/// Not thread-safe: one owner.
class PushAssembly {
 public:
  /// `push`: its name from now on. `draft` may be null.
  explicit PushAssembly(const PushHeader& header, PushId push = {},
                        std::shared_ptr<UpdateDraft> draft = nullptr);

  /// Takes the values from `offset` on. Fails, and the push cannot be completed any more, if some
  /// of them came before, are beyond the announced count, or come in too many small chunks.
  absl::Status Add(uint64_t offset, ReceivedValues values);

  /// The same for values that are not copied yet: each is loaded once, in the pass that looks at it
  /// and keeps a copy.
  absl::Status AddCopy(uint64_t offset, const UnreadValues& unread);

  bool is_complete() const { return facts_.values_received == facts_.header.count; }

  /// All but one chunk at the begin has come: an honest sender holds that back until its whole step
  /// is known to be finite, and the step may take long.
  bool awaits_seal() const;

  /// The first values that have not come, for people: "values 8 to 15". REQUIRES: !is_complete().
  std::string Missing() const;

  const PushHeader& header() const { return facts_.header; }
  PushId push() const { return facts_.push; }

  /// REQUIRES: is_complete().
  ShardMachine::PushFacts Facts() const;
  PushPayload TakePayload();

  /// Lets go of the draft's buffers now.
  void CancelDraft();

 private:
  /// Counts values in, if their place is free.
  absl::Status TakePlace(uint64_t offset, uint64_t count);
  void Keep(uint64_t offset, ReceivedValues values);

  /// The passes over what has come, block by block while the cache holds it.
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

#endif  // SLIPSTREAM_SERVER_SERVICE_PUSH_ASSEMBLY_H_
