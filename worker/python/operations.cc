#include "worker/python/operations.h"

#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "common/rpc/awake_wait.h"

namespace slipstream {

namespace {

/// Yields the processor until `flag` is set, for as long as something that comes soon may take.
void AwaitAwake(const std::atomic<bool>& flag) {
  const auto end = AwakeWait::Clock::now() + AwakeWait::kSoon;
  while (!flag && AwakeWait::Clock::now() < end) std::this_thread::yield();
}

}  // namespace

bool Operation::Wait(absl::Duration timeout) {
  if (timeout >= absl::FromChrono(AwakeWait::kSoon)) AwaitAwake(is_over_);
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  MutexLock lock(mutex_);
  while (!is_over_) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  return is_over_;
}

absl::Status Operation::status() const {
  MutexLock lock(mutex_);
  return status_;
}

void Operation::End(absl::Status status) {
  MutexLock lock(mutex_);
  status_ = std::move(status);
  is_over_ = true;
  changed_.NotifyAll();
}

Operations::~Operations() {
  std::deque<Task> not_begun;
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    not_begun.swap(tasks_);
    changed_.NotifyAll();
  }
  for (const Task& task : not_begun) task.operation->End(absl::CancelledError("the run was left"));
  thread_.join();
}

std::shared_ptr<Operation> Operations::Begin(std::function<absl::Status()> work) {
  auto operation = std::make_shared<Operation>();
  MutexLock lock(mutex_);
  tasks_.push_back({std::move(work), operation});
  has_work_ = true;
  changed_.NotifyAll();
  return operation;
}

void Operations::Run() {
  for (;;) {
    Task task;
    AwaitAwake(has_work_);
    {
      MutexLock lock(mutex_);
      while (tasks_.empty() && !is_ending_) changed_.Wait(mutex_);
      if (is_ending_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      has_work_ = !tasks_.empty();
    }
    absl::Status status;
    try {
      status = task.work();
    } catch (const std::exception& error) {
      status = absl::InternalError(std::string("exception: ") + error.what());
    }
    task.operation->End(std::move(status));
  }
}

}  // namespace slipstream
