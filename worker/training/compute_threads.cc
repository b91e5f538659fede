#include "worker/training/compute_threads.h"

#include <utility>

#include "common/base/check.h"

namespace slipstream {

ComputeThreads::ComputeThreads(size_t count) : ComputeThreads() {
  PS_CHECK(count > 0);
  threads_.reserve(count - 1);
  for (size_t thread = 1; thread < count; ++thread) {
    threads_.emplace_back([this, thread] { Serve(thread); });
  }
}

ComputeThreads::~ComputeThreads() {
  {
    MutexLock lock(mutex_);
    is_ending_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status ComputeThreads::Run(const Work& work) {
  {
    MutexLock lock(mutex_);
    work_ = &work;
    working_ = count();
    failure_ = absl::OkStatus();
    ++calls_;
  }
  changed_.NotifyAll();
  Do(work, 0);
  MutexLock lock(mutex_);
  while (working_ > 0) changed_.Wait(mutex_);
  if (thrown_ != nullptr) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return failure_;
}

void ComputeThreads::Serve(size_t thread) {
  uint64_t done = 0;
  while (true) {
    const Work* work = nullptr;
    {
      MutexLock lock(mutex_);
      while (calls_ == done && !is_ending_) changed_.Wait(mutex_);
      if (is_ending_) return;
      done = calls_;
      work = work_;
    }
    Do(*work, thread);
  }
}

void ComputeThreads::Do(const Work& work, size_t thread) {
  absl::Status status;
  std::exception_ptr thrown;
  try {
    status = work(thread);
  } catch (...) {
    thrown = std::current_exception();
  }
  MutexLock lock(mutex_);
  if (!status.ok() && (failure_.ok() || absl::IsCancelled(failure_))) failure_ = status;
  if (thrown_ == nullptr) thrown_ = thrown;
  if (--working_ == 0) changed_.NotifyAll();
}

}  // namespace slipstream
