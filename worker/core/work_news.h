#ifndef SLIPSTREAM_WORKER_CORE_WORK_NEWS_H_
#define SLIPSTREAM_WORKER_CORE_WORK_NEWS_H_

#include <cstdint>
#include <string>
#include <variant>

#include "common/base/ids.h"
#include "worker/core/unit_queue.h"
#include "worker/core/worker_core.h"

namespace slipstream {

/// A worker's wish for work.
struct WorkWish {
  /// How many mini-batches the next unit should have at least. 0: no unit is needed yet.
  uint64_t batches = 0;

  /// The newest generation of a shard that the worker knows.
  Generation generation{};
};

// The answers of the coordinator to a worker that asks for work.

/// The run has reached this stage, and units of work are of it.
struct NextStage {
  WorkerCore::Stage stage;

  /// The name of its policy, for people.
  std::string policy;
};

/// The shards, which are in step, have begun this generation: rounds that were done come again.
struct ShardsReturned {
  Generation generation{};
};

/// No more units will come.
struct NoMoreUnits {};

using WorkNews = std::variant<WorkUnit, NextStage, ShardsReturned, NoMoreUnits>;

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_WORK_NEWS_H_
