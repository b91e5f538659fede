#include "server/core/shard/lag_tracker.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace slipstream {

void LagTracker::RecordGradient(WorkerId worker, uint64_t staleness) {
  ++gradients_;
  sum_ += staleness;
  max_ = std::max(max_, staleness);
  const size_t bucket = std::min<size_t>(staleness, kBuckets - 1);
  if (histogram_.size() <= bucket) histogram_.resize(bucket + 1);
  ++histogram_[bucket];
  WorkerLag& lag = workers_[worker];
  ++lag.pushes;
  lag.last = staleness;
  lag.sum += staleness;
}

void LagTracker::RecordUpdate(Version version, std::vector<Version> bases) {
  PS_CHECK(!bases.empty());
  double sum = 0;
  for (Version base : bases) {
    PS_CHECK(base < version);
    sum += static_cast<double>(Value(version) - 1 - Value(base));
  }
  const double mean_staleness = sum / static_cast<double>(bases.size());
  vector_clocks_.push_back({version, std::move(bases), mean_staleness});
  if (vector_clocks_.size() > kClocksKept) vector_clocks_.pop_front();
  window_.push_back(mean_staleness);
  if (window_.size() > kWindowUpdates) window_.pop_front();
}

void LagTracker::RecordScale(double scale) {
  scales_.push_back(scale);
  if (scales_.size() > kWindowUpdates) scales_.pop_front();
}

void LagTracker::RecordComposite(uint32_t gradients, double staleness) {
  ++composites_;
  composite_parts_ += gradients;
  composite_sum_ += staleness;
}

double LagTracker::composite_mean() const {
  if (composites_ == 0) return 0.0;
  return composite_sum_ / static_cast<double>(composites_);
}

double LagTracker::mean() const {
  return gradients_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(gradients_);
}

double LagTracker::window_mean() const {
  if (window_.empty()) return 0.0;
  return std::accumulate(window_.begin(), window_.end(), 0.0) / static_cast<double>(window_.size());
}

double LagTracker::window_scale() const {
  if (scales_.empty()) return 1.0;
  return std::accumulate(scales_.begin(), scales_.end(), 0.0) / static_cast<double>(scales_.size());
}

}  // namespace slipstream
