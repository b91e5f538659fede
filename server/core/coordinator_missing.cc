// The part of Coordinator that finds out which members the run waits for.

#include <algorithm>

#include "server/core/coordinator.h"

namespace slipstream {

std::vector<WorkerId> Coordinator::FindMissingWorkers() const {
  std::vector<WorkerId> missing;
  for (uint32_t id = 0; id < workers_to_start_; ++id) {
    if (!membership_.IsLive(WorkerId{id})) missing.push_back(WorkerId{id});
  }
  return missing;
}

std::optional<Coordinator::MissingMembers> Coordinator::Missing(absl::Time now) const {
  if (IsOver()) return std::nullopt;
  MissingMembers missing = {.shards = {}, .workers = {}, .fails_in = start_timeout_};
  for (size_t shard = 0; shard < servers_.servers().size(); ++shard) {
    const std::optional<Servers::Server>& server = servers_.servers()[shard];
    const absl::Duration silence = now - (server.has_value() ? server->last_heard : start_);
    if (server.has_value() && silence <= kServerSilenceMax) continue;
    missing.shards.push_back(ShardId{static_cast<uint32_t>(shard)});
    missing.fails_in = std::min(missing.fails_in, start_timeout_ - silence);
  }
  if (!missing.shards.empty()) return missing;

  if (phase_ == Phase::kWaitingForWorkers) {
    missing.workers = FindMissingWorkers();
    missing.fails_in -= now - start_;
    return missing;
  }
  if (phase_ == Phase::kInitializing) {
    if (initialization_.grant().has_value()) {
      missing.workers = {initialization_.grant()->holder.worker};
    }
    missing.fails_in -= now - phase_since_;
    return missing;
  }
  if (deserted_since_.has_value() && membership_.live() == 0) {
    missing.fails_in -= now - *deserted_since_;
    return missing;
  }
  return std::nullopt;
}

}  // namespace slipstream
