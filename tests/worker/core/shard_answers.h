#ifndef SLIPSTREAM_TESTS_WORKER_CORE_SHARD_ANSWERS_H_
#define SLIPSTREAM_TESTS_WORKER_CORE_SHARD_ANSWERS_H_

#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

// What shards say to a worker's core.

inline constexpr ShardId kShard0{0};
inline constexpr ShardId kShard1{1};

inline WeightsHeader Weights(uint64_t version, std::optional<RoundWork> work = std::nullopt) {
  return {Version{version}, 100, work};
}

inline PushReply Reply(PushOutcome outcome) {
  PushReply reply;
  reply.outcome = outcome;
  return reply;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_CORE_SHARD_ANSWERS_H_
