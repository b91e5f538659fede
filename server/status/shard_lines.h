#ifndef SLIPSTREAM_SERVER_STATUS_SHARD_LINES_H_
#define SLIPSTREAM_SERVER_STATUS_SHARD_LINES_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "proto/status.pb.h"

namespace slipstream {

/// What the shards say of each worker. Made once for a status, as with many workers a search
/// through the lines for each of them would take most of its time.
///
/// Thread-safe: const after construction.
class ShardLines {
 public:
  /// `shards` must outlive it, unchanged.
  explicit ShardLines(const std::vector<v1::ShardStatus>& shards);

  /// The line of each shard, in their order; an empty one of a shard that does not know the worker.
  std::span<const v1::ShardWorkerStatus* const> Of(uint32_t worker) const;

 private:
  using Lines = std::vector<const v1::ShardWorkerStatus*>;

  const Lines of_strangers_;
  std::map<uint32_t, Lines> lines_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_SHARD_LINES_H_
