#include "worker/client/shard_lanes.h"

namespace slipstream {

ShardLanes::ShardLanes(uint32_t shards) : work_(shards) {
  for (uint32_t shard = 1; shard < shards; ++shard) {
    threads_.emplace_back([this, shard] { Serve(shard); });
  }
}

ShardLanes::~ShardLanes() {
  {
    MutexLock lock(mutex_);
    is_closing_ = true;
  }
  work_changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status ShardLanes::Run(const std::vector<ShardId>& shards, const Work& work) {
  const bool has_first = !shards.empty() && Value(shards.front()) == 0;
  {
    MutexLock lock(mutex_);
    first_failure_ = absl::OkStatus();
    for (const ShardId shard : shards) {
      if (Value(shard) == 0) continue;
      work_.at(Value(shard)) = &work;
      ++busy_;
    }
  }
  if (shards.size() > (has_first ? 1u : 0u)) work_changed_.NotifyAll();
  const absl::Status own = has_first ? work(ShardId{0}) : absl::OkStatus();

  MutexLock lock(mutex_);
  Note(own);
  while (busy_ > 0) lane_done_.Wait(mutex_);
  return first_failure_;
}

void ShardLanes::Note(const absl::Status& status) {
  // What failed ends the other lanes' calls, and they may be faster to return.
  const bool is_only_echo = absl::IsCancelled(first_failure_) && !status.ok();
  if (first_failure_.ok() || is_only_echo) first_failure_ = status;
}

void ShardLanes::Serve(uint32_t shard) {
  for (;;) {
    const Work* work = nullptr;
    {
      MutexLock lock(mutex_);
      while (!is_closing_ && work_[shard] == nullptr) work_changed_.Wait(mutex_);
      if (is_closing_) return;
      work = work_[shard];
    }
    const absl::Status status = (*work)(ShardId{shard});
    MutexLock lock(mutex_);
    work_[shard] = nullptr;
    Note(status);
    if (--busy_ == 0) lane_done_.NotifyOne();
  }
}

}  // namespace slipstream
