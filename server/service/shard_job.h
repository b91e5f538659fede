#ifndef SLIPSTREAM_SERVER_SERVICE_SHARD_JOB_H_
#define SLIPSTREAM_SERVER_SERVICE_SHARD_JOB_H_

#include <cstdint>
#include <optional>

#include "common/base/ids.h"
#include "server/service/update_path.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// What a shard's numbers go through at a time: the initial weights, or what the core ordered in
/// one decision. Its owner asks what it comes to, runs it, and then tells the core; simulated
/// shards too.
struct ShardJob {
  std::optional<Weights> initial;
  uint64_t grant = 0;  // Of the client that brought them.
  UpdateJob work;

  /// Of the gradients it consumes.
  uint64_t payload_bytes() const;

  /// What an update makes; nothing of initial weights, which are the core's first version.
  std::optional<Version> version() const;

  /// It takes no longer than waking a thread: little is to be read, or it was done while it came.
  bool is_short() const;

  /// Returns the new weights, if it makes any. Its payloads are gone afterwards.
  std::optional<Weights> Run(UpdatePath& path) &&;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_SHARD_JOB_H_
