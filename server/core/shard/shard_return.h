#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_RETURN_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_RETURN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/core/shard/shard_state.h"

namespace slipstream {

/// Returns what is left of a state once its process is gone and the shard goes on from it in
/// `generation`: its newest version, what is counted of the gradients in it, and its members with
/// their clocks and the mini-batches that are named for the open round. Calls, pushes on their way,
/// older versions, and the members' sequences, answers and bases are gone. The coordinator's
/// orders, which have to follow, bring the present view and phase. REQUIRES: `generation` is later
/// than that of the state; the state was saved when a machine's output said so.
ShardState Returned(ShardState saved, Generation generation);

/// The facts that a state does not have about the end of its process.
struct EndedProcess {
  /// The oldest version whose values are still kept.
  Version oldest_kept{};

  /// The payload bytes of the pushes that have come and are not part of a version yet.
  uint64_t bytes_held = 0;

  /// The version of the newest checkpoint; empty if there is none.
  std::optional<Version> saved;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.oldest_kept, self.bytes_held, self.saved);
  }
};

/// Returns what is left of a state once its process is gone and another one has come to the same
/// state, in the same generation: all but the calls, the pushes on their way, the draft, and the
/// versions that are older than those kept. A save that was ordered and did not come to the disk is
/// due again. REQUIRES: end.oldest_kept is at most the published version.
ShardState Continued(ShardState state, const EndedProcess& end);

/// Returns the state as bytes, which later releases can read, too. REQUIRES: the open round has no
/// contributions.
std::string EncodeShardState(const ShardState& state);

/// Returns the state of which EncodeShardState made these bytes, in this release or an earlier one;
/// DATA_LOSS if they are not such bytes. Damage that leaves numbers which a state may have is not
/// noticed.
absl::StatusOr<ShardState> DecodeShardState(std::string_view bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_RETURN_H_
