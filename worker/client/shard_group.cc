#include "worker/client/shard_group.h"

#include <cstdint>
#include <utility>

#include "common/base/check.h"

namespace slipstream {

ShardGroup::ShardGroup(const std::vector<std::string>& servers, const ShardMap& map,
                       const ShardOptions& options, const Sleeper& sleeper, CancelSwitch& cancel,
                       const std::vector<std::string>& aggregators)
    : map_(map), cancel_(cancel), lanes_(map.shards()) {
  PS_CHECK(servers.size() == map.shards());
  PS_CHECK(aggregators.empty() || aggregators.size() == servers.size());
  for (uint32_t i = 0; i < map.shards(); ++i) {
    const ShardId shard{i};
    all_.push_back(shard);
    clients_.push_back(std::make_unique<ShardClient>(
        ShardClient::Place{.shard = shard,
                           .address = servers[i],
                           .range = map.range(shard),
                           .aggregator = aggregators.empty() ? std::string() : aggregators[i]},
        options, sleeper, cancel));
  }
}

absl::Status ShardGroup::Run(const std::vector<ShardId>& shards, const Work& work) {
  return lanes_.Run(shards, [&](ShardId shard) {
    absl::Status status = work(client(shard));
    if (!status.ok()) EndCalls();
    return status;
  });
}

absl::Status ShardGroup::Try(const Work& work) {
  return lanes_.Run(all_, [&](ShardId shard) { return work(client(shard)); });
}

void ShardGroup::Start(const std::vector<ShardId>& shards, Work work) {
  lanes_.Start(shards,
               [this, work = std::move(work)](ShardId shard) { return work(client(shard)); });
}

}  // namespace slipstream
