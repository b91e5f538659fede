#include "worker/client/gradient_feed.h"

#include "common/base/check.h"

namespace slipstream {

void GradientFeed::OnGradientReady(ParameterRange range) {
  if (last_change_) last_change_(range);
  MutexLock lock(mutex_);
  PS_CHECK(range.end == final_from_ && state_ == State::kComputing);
  final_from_ = range.begin;
  changed_.NotifyAll();
}

void GradientFeed::Seal(const PushTrailer& trailer) {
  MutexLock lock(mutex_);
  PS_CHECK(state_ == State::kComputing);
  trailer_ = trailer;
  final_from_ = 0;
  state_ = State::kSealed;
  changed_.NotifyAll();
}

void GradientFeed::Abort() {
  MutexLock lock(mutex_);
  PS_CHECK(state_ != State::kSealed);
  state_ = State::kAborted;
  changed_.NotifyAll();
}

bool GradientFeed::IsDecided(size_t from) const {
  MutexLock lock(mutex_);
  return final_from_ <= from || state_ == State::kAborted;
}

bool GradientFeed::AwaitFinal(size_t from) {
  MutexLock lock(mutex_);
  while (final_from_ > from && state_ != State::kAborted) changed_.Wait(mutex_);
  return state_ != State::kAborted;
}

bool GradientFeed::AwaitTrailer() {
  MutexLock lock(mutex_);
  while (state_ == State::kComputing) changed_.Wait(mutex_);
  return state_ == State::kSealed;
}

PushTrailer GradientFeed::trailer() const {
  MutexLock lock(mutex_);
  return trailer_;
}

bool GradientFeed::is_over() const {
  MutexLock lock(mutex_);
  return state_ != State::kComputing;
}

bool GradientFeed::is_aborted() const {
  MutexLock lock(mutex_);
  return state_ == State::kAborted;
}

}  // namespace slipstream
