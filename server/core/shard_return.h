#ifndef SLIPSTREAM_SERVER_CORE_SHARD_RETURN_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_RETURN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "server/core/shard_state.h"

namespace slipstream {

/// Returns what is left of a state once its process is gone and the shard goes on from it in
/// `life`: its newest version, what is counted of the gradients in it, and its members with their
/// clocks and the mini-batches that are named for the open round. Calls, pushes on their way, older
/// versions, and the members' sequences, answers and bases are gone. The coordinator's orders,
/// which have to follow, bring the present view and phase. REQUIRES: `life` is later than that of
/// the state; the state was saved when a machine's output said so.
ShardState Returned(ShardState saved, Life life);

/// Returns the state as bytes, without what ends with the process: calls, payloads, and the draft.
/// Only the same version of the program can read them. REQUIRES: the open round has no
/// contributions.
std::string EncodeShardState(const ShardState& state);

/// Returns the state of which EncodeShardState made these bytes; DATA_LOSS if they are not such
/// bytes. Damage that leaves numbers which a state may have is not noticed.
absl::StatusOr<ShardState> DecodeShardState(std::string_view bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_RETURN_H_
