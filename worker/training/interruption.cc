#include "worker/training/interruption.h"

#include <algorithm>
#include <chrono>

#include "common/base/check.h"

namespace slipstream {

void Interruption::Fail(const absl::Status& status) {
  PS_CHECK(!status.ok());
  MutexLock lock(mutex_);
  failure_.Note(status);
  Interrupt();
}

void Interruption::Stop() {
  MutexLock lock(mutex_);
  is_stopped_ = true;
  Interrupt();
}

void Interruption::Interrupt() {
  is_interrupted_ = true;
  cancel_.Throw();
  changed_.NotifyAll();
}

bool Interruption::interrupted() const {
  MutexLock lock(mutex_);
  return is_interrupted_;
}

absl::Status Interruption::failure() const {
  MutexLock lock(mutex_);
  if (is_stopped_ && absl::IsCancelled(failure_.status())) return absl::OkStatus();
  return failure_.status();
}

bool Interruption::Sleep(absl::Duration duration) {
  const auto deadline = std::chrono::steady_clock::now() +
                        absl::ToChronoNanoseconds(std::min(duration, absl::Hours(24)));
  MutexLock lock(mutex_);
  while (!is_interrupted_ && changed_.WaitUntil(mutex_, deadline)) continue;
  return !is_interrupted_;
}

}  // namespace slipstream
