#include "deploy/lab/compute_pool.h"

#include "common/base/check.h"
#include "deploy/lab/measured_times.h"

namespace slipstream {

ComputePool::ComputePool(std::vector<std::unique_ptr<ComputeLane>> lanes)
    : lanes_(std::move(lanes)) {
  PS_CHECK(!lanes_.empty());
  for (size_t i = 1; i < lanes_.size(); ++i) {
    threads_.emplace_back([this, i] { Run(*lanes_[i]); });
  }
}

ComputePool::~ComputePool() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    waiting_.clear();
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<ComputePool::Job> ComputePool::Start(absl::Time due, Work work) {
  auto job = std::make_shared<Job>();
  job->work_ = std::move(work);
  job->place_ = {due, jobs_begun_++};
  MutexLock lock(mutex_);
  waiting_.emplace(job->place_, job);
  changed_.NotifyAll();
  return job;
}

void ComputePool::Await(Job& job) {
  for (;;) {
    std::shared_ptr<Job> next;
    {
      MutexLock lock(mutex_);
      while (job.state_ == Job::State::kRunning && waiting_.empty()) changed_.Wait(mutex_);
      if (job.state_ == Job::State::kDone) return;
      next = TakeFirst();
    }
    Compute(*next, *lanes_.front());
  }
}

void ComputePool::Drop(Job& job) {
  MutexLock lock(mutex_);
  if (job.state_ == Job::State::kWaiting) waiting_.erase(job.place_);
  while (job.state_ == Job::State::kRunning) changed_.Wait(mutex_);
}

std::shared_ptr<ComputePool::Job> ComputePool::TakeFirst() {
  std::shared_ptr<Job> first = std::move(waiting_.begin()->second);
  waiting_.erase(waiting_.begin());
  first->state_ = Job::State::kRunning;
  return first;
}

absl::Duration ComputePool::computed() {
  MutexLock lock(mutex_);
  return computed_;
}

void ComputePool::Compute(Job& job, ComputeLane& lane) {
  const double begin = ReadClock(MeasuringClock::kThread);
  job.work_(lane);
  const double end = ReadClock(MeasuringClock::kThread);
  MutexLock lock(mutex_);
  computed_ += absl::Seconds(end - begin);
  job.work_ = nullptr;
  job.state_ = Job::State::kDone;
  changed_.NotifyAll();
}

void ComputePool::Run(ComputeLane& lane) {
  for (;;) {
    std::shared_ptr<Job> next;
    {
      MutexLock lock(mutex_);
      while (!is_ending_ && waiting_.empty()) changed_.Wait(mutex_);
      if (is_ending_) return;
      next = TakeFirst();
    }
    Compute(*next, lane);
  }
}

}  // namespace slipstream
