#ifndef SLIPSTREAM_WORKER_CORE_WEIGHTS_READING_H_
#define SLIPSTREAM_WORKER_CORE_WEIGHTS_READING_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// Reads weights that no gradient is computed from, of all shards: which of them to pull from.
/// Where all are updated in step, so that their versions have the numbers of rounds as stamps, and
/// the versions differ, the shards behind are asked again for the newest version. They may pass
/// that meanwhile, so this is tried a few times; if the versions still differ, whoever reads
/// reports it. A shard in an earlier generation than another one is behind, whatever its version.
///
/// Not thread-safe: one owner.
class WeightsReading {
 public:
  /// `identity` is that of a member, because shards reserve memory for members.
  WeightsReading(const Identity& identity, uint64_t shard_map, uint32_t shards);

  /// The shards to pull from now; none once the reading is complete.
  const std::vector<ShardId>& due() const { return due_; }
  const PullRequest& request() const { return request_; }

  /// Notes the weights of a shard.
  void OnPulled(ShardId shard, const WeightsHeader& header);

  /// Decides what to do next, once all weights that were due are there.
  void GoOn();

  /// The headers of the weights that were read, by shard.
  const std::vector<WeightsHeader>& headers() const { return headers_; }

 private:
  PullRequest request_;
  std::vector<ShardId> due_;
  std::vector<WeightsHeader> headers_;
  int tries_left_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_WEIGHTS_READING_H_
