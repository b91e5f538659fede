#include "worker/python/operations.h"

#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace slipstream {

bool Operation::Wait(absl::Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  MutexLock lock(mutex_);
  while (!is_over_) {
    if (!changed_.WaitUntil(mutex_, deadline)) break;
  }
  return is_over_;
}

bool Operation::is_over() const {
  MutexLock lock(mutex_);
  return is_over_;
}

absl::Status Operation::status() const {
  MutexLock lock(mutex_);
  return status_;
}

void Operation::End(absl::Status status) {
  MutexLock lock(mutex_);
  is_over_ = true;
  status_ = std::move(status);
  changed_.NotifyAll();
}

Operations::~Operations() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  for (const Task& task : tasks_) task.operation->End(absl::CancelledError("the run was left"));
}

std::shared_ptr<Operation> Operations::Begin(std::function<absl::Status()> work) {
  auto operation = std::make_shared<Operation>();
  MutexLock lock(mutex_);
  tasks_.push_back({std::move(work), operation});
  changed_.NotifyAll();
  return operation;
}

void Operations::Run() {
  for (;;) {
    Task task;
    {
      MutexLock lock(mutex_);
      while (tasks_.empty() && !is_ending_) changed_.Wait(mutex_);
      if (is_ending_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
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
