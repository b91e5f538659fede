#include "tests/simulation/worker_shards.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace slipstream {
namespace {

std::vector<ShardId> AllOf(const ShardMap& map) {
  std::vector<ShardId> all;
  for (uint32_t shard = 0; shard < map.shards(); ++shard) all.push_back(ShardId{shard});
  return all;
}

}  // namespace

WorkerShards::WorkerShards(const SimWorld& world, const std::shared_ptr<Process>& process,
                           const Identity& identity, absl::Duration lease, ShardMap map)
    : world_(world),
      process_(process),
      identity_(identity),
      lease_(lease),
      map_(std::move(map)),
      all_(AllOf(map_)) {}

std::span<float> WorkerShards::Part(std::vector<float>& whole, ShardId shard) const {
  const ParameterRange range = map_.range(shard);
  return std::span(whole).subspan(range.begin, range.size());
}

std::span<const float> WorkerShards::Part(const std::vector<float>& whole, ShardId shard) const {
  const ParameterRange range = map_.range(shard);
  return std::span(whole).subspan(range.begin, range.size());
}

std::vector<std::unique_ptr<ShardLane>> WorkerShards::MakeLanes() const {
  PushTries::Options options;
  options.retry.give_up_after = MembersPatience(lease_);
  const ClusterSpec& cluster = world_.scenario.run.cluster;
  const uint32_t worker = Value(identity_.worker);
  std::optional<uint32_t> group;
  if (cluster.tree.fanout > 0 && worker < cluster.workers) group = worker / cluster.tree.fanout;
  std::vector<std::unique_ptr<ShardLane>> lanes;
  for (const ShardId shard : all_) {
    options.seed = world_.scenario.run.seed + Value(identity_.incarnation) + Value(shard);
    lanes.push_back(std::make_unique<ShardLane>(shard, process_, world_.queue, world_.network,
                                                options, group, &world_.history));
  }
  return lanes;
}

void WorkerShards::NoteReceived(ShardId shard, const WeightsHeader& header,
                                const std::vector<float>& whole) const {
  const std::span<const float> weights = Part(whole, shard);
  world_.history.Add(
      WeightsReceived{shard,
                      {header.generation, header.version},
                      identity_,
                      std::make_shared<std::vector<float>>(weights.begin(), weights.end())});
}

}  // namespace slipstream
