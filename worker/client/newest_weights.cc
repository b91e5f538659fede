#include "worker/client/newest_weights.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {

NewestWeights::NewestWeights(const Identity& identity, const std::vector<std::string>& servers,
                             const ShardMap& map, const ShardOptions& options,
                             const Sleeper& sleeper, CancelSwitch& cancel,
                             const std::vector<std::string>& aggregators)
    : identity_(identity),
      newest_(map.shards()),
      cancel_(&cancel),
      group_(servers, map, options, sleeper, cancel_, aggregators) {
  MutexLock lock(mutex_);
  for (const ShardId shard : group_.all()) {
    newest_[Value(shard)].values.resize(map.range(shard).size());
  }
}

NewestWeights::~NewestWeights() {
  {
    MutexLock lock(mutex_);
    is_closing_ = true;
    changed_.NotifyAll();
  }
  group_.EndCalls();
}

absl::StatusOr<std::vector<NewestWeights::Taken>> NewestWeights::Take(
    const std::vector<std::optional<Held>>& held, std::span<float> weights) {
  PS_CHECK(held.size() == group_.map().shards() && weights.size() == group_.map().parameters());
  {
    MutexLock lock(mutex_);
    if (!failure_.status().ok()) return failure_.status();
    ++takes_;
    is_resting_ = false;
    changed_.NotifyAll();
  }
  if (!std::exchange(has_started_, true)) {
    group_.Start(group_.all(), [this](ShardClient& shard) { return Follow(shard); });
  }
  std::vector<Taken> taken;
  for (const ShardId shard : group_.all()) {
    const absl::StatusOr<const Newest*> newest = BeginReading(shard, held[Value(shard)]);
    if (!newest.ok()) return newest.status();
    if (*newest == nullptr) continue;
    std::ranges::copy((*newest)->values, weights.subspan(group_.map().range(shard).begin).begin());
    taken.push_back({shard, *(*newest)->header});
    EndReading(shard);
  }
  return taken;
}

absl::StatusOr<const NewestWeights::Newest*> NewestWeights::BeginReading(
    ShardId shard, const std::optional<Held>& held) {
  MutexLock lock(mutex_);
  Newest& newest = newest_[Value(shard)];
  while (!held.has_value() && !newest.header.has_value() && failure_.status().ok()) {
    changed_.Wait(mutex_);
  }
  if (!failure_.status().ok()) return failure_.status();
  if (!newest.header.has_value() || Of(*newest.header) <= held) return nullptr;
  newest.is_read = true;
  return &newest;
}

void NewestWeights::EndReading(ShardId shard) {
  MutexLock lock(mutex_);
  newest_[Value(shard)].is_read = false;
  changed_.NotifyAll();
}

void NewestWeights::Rest() {
  MutexLock lock(mutex_);
  is_resting_ = true;
}

// These run in a lane.

absl::Status NewestWeights::Follow(ShardClient& shard) {
  std::vector<float> arriving(shard.range().size());
  for (;;) {
    const uint64_t takes_before = takes();
    const absl::StatusOr<ShardClient::Pulled> pulled =
        shard.Pull(RequestFor(shard), WeightsArrival(arriving));
    if (!pulled.ok()) {
      {
        // Before the other lanes are cancelled, so that Take reports the cause.
        MutexLock lock(mutex_);
        failure_.Note(pulled.status());
        changed_.NotifyAll();
      }
      group_.EndCalls();
      return pulled.status();
    }
    const bool has_news = Keep(shard.shard(), pulled->header, arriving);
    if (!AwaitTurn(has_news, takes_before)) return absl::OkStatus();
  }
}

PullRequest NewestWeights::RequestFor(const ShardClient& shard) const {
  PullRequest request = {.identity = identity_,
                         .shard_map = group_.map().fingerprint(),
                         .weights_encoding = shard.options().weights_encoding};
  MutexLock lock(mutex_);
  const std::optional<WeightsHeader>& header = newest_[Value(shard.shard())].header;
  if (header.has_value()) {
    request.min_version = Next(header->version);
    request.min_generation = header->generation;
  }
  return request;
}

bool NewestWeights::Keep(ShardId shard, const WeightsHeader& header, std::vector<float>& arrived) {
  MutexLock lock(mutex_);
  Newest& newest = newest_[Value(shard)];
  if (newest.header.has_value() && Of(header) <= Of(*newest.header)) return false;
  while (newest.is_read) changed_.Wait(mutex_);
  newest.values.swap(arrived);
  newest.header = header;
  changed_.NotifyAll();
  return true;
}

bool NewestWeights::AwaitTurn(bool has_news, uint64_t takes) {
  MutexLock lock(mutex_);
  // A shard that is about to end, or between two of a run's policies, answers at once with what it
  // has.
  while (!is_closing_ && (is_resting_ || (!has_news && takes_ == takes))) changed_.Wait(mutex_);
  return !is_closing_;
}

uint64_t NewestWeights::takes() const {
  MutexLock lock(mutex_);
  return takes_;
}

}  // namespace slipstream
