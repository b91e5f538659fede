#include "server/status/shard_lines.h"

namespace slipstream {

ShardLines::ShardLines(const std::vector<v1::ShardStatus>& shards)
    : of_strangers_(shards.size(), &v1::ShardWorkerStatus::default_instance()) {
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    for (const v1::ShardWorkerStatus& line : shards[shard].workers()) {
      lines_.try_emplace(line.worker(), of_strangers_).first->second[shard] = &line;
    }
  }
}

std::span<const v1::ShardWorkerStatus* const> ShardLines::Of(uint32_t worker) const {
  const auto found = lines_.find(worker);
  return found == lines_.end() ? of_strangers_ : found->second;
}

}  // namespace slipstream
