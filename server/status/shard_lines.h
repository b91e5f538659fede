#ifndef SLIPSTREAM_SERVER_STATUS_SHARD_LINES_H_
#define SLIPSTREAM_SERVER_STATUS_SHARD_LINES_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "proto/status.pb.h"

namespace slipstream {

/// The lines of the shards about each worker. It is made once for a status: with many workers, a
/// search through the lines for each of them would take most of the status' time.
///
/// Thread-safe: const after construction.
class ShardLines {
 public:
  /// `shards` must outlive it, unchanged.
  explicit ShardLines(const std::vector<v1::ShardStatus>& shards);

  /// Returns the worker's line of each shard, in order of shards; it is empty if the shard does not
  /// know the worker.
  std::span<const v1::ShardWorkerStatus* const> Of(uint32_t worker) const;

 private:
  using Lines = std::vector<const v1::ShardWorkerStatus*>;

  const Lines of_strangers_;
  std::map<uint32_t, Lines> lines_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_SHARD_LINES_H_
