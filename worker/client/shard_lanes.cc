#include "worker/client/shard_lanes.h"

#include <utility>

namespace slipstream {

ShardLanes::ShardLanes(uint32_t shards) : lanes_(shards) {}

ShardLanes::~ShardLanes() {
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

std::shared_ptr<ShardLanes::Job> ShardLanes::Give(const std::vector<ShardId>& shards, Work work) {
  auto job = std::make_shared<Job>(std::move(work));
  job->left = static_cast<uint32_t>(shards.size());
  for (const ShardId shard : shards) lanes_.at(Value(shard)).jobs.push_back(job);
  return job;
}

void ShardLanes::Wake(ShardId shard) {
  if (!is_closing_) lanes_.at(Value(shard)).changed.NotifyOne();
}

void ShardLanes::MakeThread(ShardId shard) {
  Lane& lane = lanes_.at(Value(shard));
  if (!lane.thread.joinable()) lane.thread = std::thread([this, shard] { Serve(shard); });
}

void ShardLanes::Start(const std::vector<ShardId>& shards, Work work) {
  MutexLock lock(mutex_);
  for (const ShardId shard : shards) MakeThread(shard);
  Give(shards, std::move(work));
  for (const ShardId shard : shards) Wake(shard);
}

absl::Status ShardLanes::Run(const std::vector<ShardId>& shards, Work work) {
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

void ShardLanes::DoNext(ShardId shard) {
  std::shared_ptr<Job> job;
  {
    MutexLock lock(mutex_);
    job = lanes_[Value(shard)].jobs.front();
  }
  const absl::Status status = job->work(shard);
  MutexLock lock(mutex_);
  Lane& lane = lanes_[Value(shard)];
  lane.jobs.pop_front();
  lane.is_busy = false;
  if (!lane.jobs.empty()) Wake(shard);
  job->failure.Note(status);
  if (--job->left == 0) job_done_.NotifyAll();
}

void ShardLanes::Serve(ShardId shard) {
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
