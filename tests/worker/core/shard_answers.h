#ifndef SLIPSTREAM_TESTS_WORKER_CORE_SHARD_ANSWERS_H_
#define SLIPSTREAM_TESTS_WORKER_CORE_SHARD_ANSWERS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <variant>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "worker/core/worker_core.h"

namespace slipstream {

// Answers of shards to a worker's core.

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

/// Lets the slot begin the batches that the core names for it.
inline void Begin(WorkerCore& core, uint32_t slot = 0) {
  const WorkerCore::Action action = core.Next(slot);
  ASSERT_TRUE(std::holds_alternative<WorkerCore::ComputeBatches>(action));
  core.OnBatchesBegun(std::get<WorkerCore::ComputeBatches>(action).batches, slot);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_CORE_SHARD_ANSWERS_H_
