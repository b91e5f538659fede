#ifndef SLIPSTREAM_SERVER_SERVICE_PUSH_ASSEMBLY_H_
#define SLIPSTREAM_SERVER_SERVICE_PUSH_ASSEMBLY_H_

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/kernels/segments.h"
#include "common/wire/values_codec.h"
#include "server/core/shard_core.h"

namespace slipstream {

/// The received values of one push, where gRPC left them.
struct PushPayload {
  std::vector<ReceivedValues> pieces;
  Segments segments;  // Of all pieces, in order.
  uint64_t bytes = 0;
};

/// Collects one push, chunk by chunk, and learns of its values in the pass that they need anyway:
/// are they finite, what is their checksum. Nothing has an effect before the push is complete.
///
/// Not thread-safe: one owner.
class PushAssembly {
 public:
  explicit PushAssembly(const PushHeader& header);

  /// Takes the values from `offset` on. Fails, and the push cannot be completed any more, if they
  /// do not follow the ones before or exceed the announced count.
  absl::Status Add(uint64_t offset, ReceivedValues values);

  bool is_complete() const { return facts_.values_received == facts_.header.count; }
  const PushHeader& header() const { return facts_.header; }

  /// REQUIRES: is_complete().
  ShardCore::PushFacts Facts() const;
  PushPayload TakePayload();

 private:
  struct FreeHash {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };

  ShardCore::PushFacts facts_;
  PushPayload payload_;
  std::unique_ptr<XXH3_state_t, FreeHash> hash_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_PUSH_ASSEMBLY_H_
