#include "worker/compute/weights_gate.h"

#include <iterator>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"

namespace slipstream {

void WeightsGate::Expect() {
  MutexLock lock(mutex_);
  PS_CHECK(!is_read_);
  missing_ = {{0, parameters_}};
}

void WeightsGate::Arrived(ParameterRange range) {
  PS_CHECK(range.begin <= range.end && range.end <= parameters_);
  MutexLock lock(mutex_);
  Erase(range);
  changed_.NotifyAll();
}

void WeightsGate::Erase(ParameterRange range) {
  auto missing = missing_.upper_bound(range.begin);
  if (missing != missing_.begin()) --missing;
  while (missing != missing_.end() && missing->first < range.end) {
    const auto [begin, end] = *missing;
    if (end <= range.begin) {
      ++missing;
      continue;
    }
    missing = missing_.erase(missing);
    if (begin < range.begin) missing_[begin] = range.begin;
    if (end > range.end) missing_[range.end] = end;
  }
}

void WeightsGate::Revoke(ParameterRange range) {
  MutexLock lock(mutex_);
  Erase(range);
  missing_[range.begin] = range.end;
  is_revoked_ = true;
  changed_.NotifyAll();
  // A step that begins in the meantime waits for the range itself.
  const uint64_t step = steps_;
  while (is_read_ && steps_ == step) changed_.Wait(mutex_);
}

void WeightsGate::Abandon() {
  MutexLock lock(mutex_);
  is_abandoned_ = true;
  changed_.NotifyAll();
}

void WeightsGate::Enter() {
  MutexLock lock(mutex_);
  PS_CHECK(!is_read_);
  is_read_ = true;
  ++steps_;
  waited_ = absl::ZeroDuration();
}

bool WeightsGate::Leave() {
  MutexLock lock(mutex_);
  PS_CHECK(is_read_);
  is_read_ = false;
  changed_.NotifyAll();
  return !std::exchange(is_revoked_, false);
}

bool WeightsGate::IsMissing(ParameterRange range) const {
  if (range.size() == 0) return false;
  const auto after = missing_.lower_bound(range.end);
  return after != missing_.begin() && std::prev(after)->second > range.begin;
}

bool WeightsGate::Has(ParameterRange range) const {
  MutexLock lock(mutex_);
  PS_CHECK(is_read_);
  return !IsMissing(range) && !is_revoked_;
}

bool WeightsGate::Await(ParameterRange range) {
  MutexLock lock(mutex_);
  PS_CHECK(is_read_);
  if (!IsMissing(range)) return !is_revoked_;
  const absl::Time begin = absl::Now();
  while (IsMissing(range) && !is_revoked_ && !is_abandoned_) changed_.Wait(mutex_);
  waited_ += absl::Now() - begin;
  return !IsMissing(range) && !is_revoked_;
}

absl::Duration WeightsGate::waited() const {
  MutexLock lock(mutex_);
  return waited_;
}

}  // namespace slipstream
