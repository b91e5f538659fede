#include "tests/simulation/sim_newest_weights.h"

#include <algorithm>
#include <utility>

namespace slipstream {
namespace {

GenerationVersion VersionOf(const WeightsHeader& header) {
  return {header.generation, header.version};
}

}  // namespace

SimNewestWeights::SimNewestWeights(const SimWorld& world, const std::shared_ptr<Process>& process,
                                   const WorkerShards& shards,
                                   std::function<void(const absl::Status&)> on_pulled)
    : world_(world),
      process_(process),
      shards_(shards),
      on_pulled_(std::move(on_pulled)),
      arriving_(shards.map().parameters()),
      newest_(shards.map().parameters()) {
  for (std::unique_ptr<ShardLane>& lane : shards.MakeLanes()) {
    lanes_.push_back({.shard = std::move(lane), .newest = std::nullopt});
  }
}

void SimNewestWeights::Close() {
  is_closed_ = true;
  for (Lane& lane : lanes_) lane.shard->Close();
}

void SimNewestWeights::GoOn(ShardId shard) {
  is_resting_ = false;
  if (std::exchange(lanes_[Value(shard)].stands_still, false)) Pull(shard);
}

bool SimNewestWeights::Follow() {
  for (const ShardId shard : shards_.all()) GoOn(shard);
  return std::ranges::all_of(lanes_, [](const Lane& lane) { return lane.newest.has_value(); });
}

std::optional<WeightsHeader> SimNewestWeights::Take(ShardId shard,
                                                    const std::optional<GenerationVersion>& held,
                                                    std::vector<float>& weights) {
  GoOn(shard);
  const Lane& lane = lanes_[Value(shard)];
  if (!lane.newest.has_value() || VersionOf(*lane.newest) <= held) return std::nullopt;
  std::ranges::copy(shards_.Part(std::as_const(newest_), shard),
                    shards_.Part(weights, shard).begin());
  return lane.newest;
}

std::vector<GenerationVersion> SimNewestWeights::versions() const {
  std::vector<GenerationVersion> versions;
  for (const Lane& lane : lanes_) {
    versions.push_back(lane.newest.has_value() ? VersionOf(*lane.newest) : GenerationVersion());
  }
  return versions;
}

void SimNewestWeights::Pull(ShardId shard) {
  Lane& lane = lanes_[Value(shard)];
  PullRequest request = {.identity = shards_.identity(), .shard_map = shards_.map().fingerprint()};
  if (lane.newest.has_value()) {
    request.min_generation = lane.newest->generation;
    request.min_version = Next(lane.newest->version);
  }
  lane.shard->Pull(request, shards_.Part(arriving_, shard),
                   [this, shard](const absl::StatusOr<std::optional<WeightsHeader>>& weights) {
                     OnPulled(shard, weights);
                   });
}

void SimNewestWeights::OnPulled(ShardId shard,
                                const absl::StatusOr<std::optional<WeightsHeader>>& weights) {
  if (!weights.ok()) return on_pulled_(weights.status());
  shards_.NoteReceived(shard, **weights, arriving_);
  Lane& lane = lanes_[Value(shard)];
  const bool is_news = !lane.newest.has_value() || VersionOf(*lane.newest) < VersionOf(**weights);
  if (is_news) {
    lane.newest = *weights;
    std::ranges::copy(shards_.Part(std::as_const(arriving_), shard),
                      shards_.Part(newest_, shard).begin());
  }
  // This runs inside the lane's callback, so the next pull is made in a later event.
  world_.network.AtProcess(process_, world_.queue.now(), [this, shard, is_news] {
    if (is_closed_) return;
    Lane& pulled = lanes_[Value(shard)];
    pulled.stands_still = is_resting_ || !is_news;
    if (!pulled.stands_still) Pull(shard);
    on_pulled_(absl::OkStatus());
  });
}

}  // namespace slipstream
