#include "deploy/lab/virtual_newest.h"

#include <algorithm>

namespace slipstream {

VirtualNewest::VirtualNewest(const LabContext& lab, VirtualProcess& process,
                             const Identity& identity, uint64_t shard_map,
                             std::function<void()> on_news,
                             std::function<void(const absl::Status&)> on_failure)
    : identity_(identity),
      shard_map_(shard_map),
      on_news_(std::move(on_news)),
      calls_(lab, process, identity.worker, std::move(on_failure)),
      lanes_(lab.servers.size()) {}

void VirtualNewest::GoOn(ShardId shard) {
  is_resting_ = false;
  if (std::exchange(lanes_[Value(shard)].stands_still, false)) Pull(shard);
}

bool VirtualNewest::Follow() {
  for (uint32_t i = 0; i < lanes_.size(); ++i) GoOn(ShardId{i});
  return std::ranges::all_of(lanes_, [](const Lane& lane) { return lane.newest.has_value(); });
}

std::optional<VirtualNewest::Taken> VirtualNewest::Take(
    ShardId shard, const std::optional<std::pair<Generation, Version>>& held) {
  GoOn(shard);
  const Lane& lane = lanes_[Value(shard)];
  const bool is_newer = lane.newest.has_value() && std::pair(lane.newest->header.generation,
                                                             lane.newest->header.version) > held;
  return is_newer ? lane.newest : std::nullopt;
}

void VirtualNewest::Pull(ShardId shard) {
  const auto request = [this, shard] {
    PullRequest made = {.identity = identity_, .shard_map = shard_map_};
    const std::optional<Taken>& newest = lanes_[Value(shard)].newest;
    if (newest.has_value()) {
      made.min_version = Next(newest->header.version);
      made.min_generation = newest->header.generation;
    }
    return made;
  };
  calls_.Pull(shard, request,
              [this, shard](const PullRequest&, const Answer& answer) { OnPulled(shard, answer); });
}

void VirtualNewest::OnPulled(ShardId shard, const Answer& answer) {
  Lane& lane = lanes_[Value(shard)];
  // A shard that is about to end answers at once with what it has.
  const bool has_news =
      answer.weights != nullptr &&
      (!lane.newest.has_value() || answer.header->version > lane.newest->header.version);
  if (has_news) lane.newest = Taken{*answer.header, answer.weights};
  lane.stands_still = is_resting_ || !has_news;
  if (!lane.stands_still) Pull(shard);
  on_news_();
}

}  // namespace slipstream
