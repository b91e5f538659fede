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

ShardGroup::~ShardGroup() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    is_closing_ = true;
    for (Lane& lane : lanes_) {
      lane.changed.NotifyAll();
      if (lane.thread.joinable()) threads.push_back(std::move(lane.thread));
    }
  }
  for (std::thread& thread : threads) thread.join();
}

std::shared_ptr<ShardGroup::Job> ShardGroup::Give(const std::vector<ShardId>& shards, Work work) {
  auto job = std::make_shared<Job>(std::move(work));
  job->left = static_cast<uint32_t>(shards.size());
  for (const ShardId shard : shards) lanes_.at(Value(shard)).jobs.push_back(job);
  return job;
}

void ShardGroup::Wake(ShardId shard) {
  if (!is_closing_) lanes_.at(Value(shard)).changed.NotifyOne();
}

void ShardGroup::MakeThread(ShardId shard) {
  Lane& lane = lanes_.at(Value(shard));
  if (!lane.thread.joinable()) lane.thread = std::thread([this, shard] { Serve(shard); });
}

void ShardGroup::Start(const std::vector<ShardId>& shards, Work work) {
  MutexLock lock(mutex_);
  for (const ShardId shard : shards) MakeThread(shard);
  Give(shards, std::move(work));
  for (const ShardId shard : shards) Wake(shard);
}

absl::Status ShardGroup::Run(const std::vector<ShardId>& shards, const Work& work) {
  return Try(shards, [&](ShardClient& shard) {
    absl::Status status = work(shard);
    if (!status.ok()) EndCalls();
    return status;
  });
}

absl::Status ShardGroup::Try(const std::vector<ShardId>& shards, Work work) {
  std::shared_ptr<Job> job;
  bool serves_first = false;
  {
    MutexLock lock(mutex_);
    for (const ShardId shard : shards) {
      if (Value(shard) > 0 || !lanes_[0].jobs.empty()) MakeThread(shard);
    }
    job = Give(shards, std::move(work));
    for (const ShardId shard : shards) {
      Lane& lane = lanes_[Value(shard)];
      if (Value(shard) == 0 && lane.jobs.size() == 1) {
        serves_first = true;
        lane.is_busy = true;
      } else {
        Wake(shard);
      }
    }
  }
  if (serves_first) DoNext(ShardId{0});
  MutexLock lock(mutex_);
  while (job->left > 0) job_done_.Wait(mutex_);
  return job->failure.status();
}

void ShardGroup::DoNext(ShardId shard) {
  std::shared_ptr<Job> job;
  {
    MutexLock lock(mutex_);
    job = lanes_[Value(shard)].jobs.front();
  }
  const absl::Status status = job->work(*clients_[Value(shard)]);
  MutexLock lock(mutex_);
  Lane& lane = lanes_[Value(shard)];
  lane.jobs.pop_front();
  lane.is_busy = false;
  if (!lane.jobs.empty()) Wake(shard);
  job->failure.Note(status);
  if (--job->left == 0) job_done_.NotifyAll();
}

void ShardGroup::Serve(ShardId shard) {
  for (;;) {
    {
      MutexLock lock(mutex_);
      Lane& lane = lanes_[Value(shard)];
      while (!is_closing_ && (lane.jobs.empty() || lane.is_busy)) lane.changed.Wait(mutex_);
      if (is_closing_) return;
      lane.is_busy = true;
    }
    DoNext(shard);
  }
}

}  // namespace slipstream
