#include "worker/core/unit_queue.h"

#include "common/base/check.h"

namespace slipstream {

void UnitQueue::Add(const WorkUnit& unit) {
  PS_CHECK(unit.batches > 0);
  PS_CHECK(!is_closed_ && units_.size() < 2);
  units_.push_back(unit);
}

std::optional<uint64_t> UnitQueue::batch() const {
  if (units_.empty()) return std::nullopt;
  return units_.front().first + done_;
}

void UnitQueue::Done() {
  PS_CHECK(!units_.empty());
  if (++done_ < units_.front().batches) return;
  finished_.push_back({units_.front().id, done_});
  if (finished_.size() > kFinishedUnitsTold) finished_.pop_front();
  units_.pop_front();
  done_ = 0;
}

bool UnitQueue::has_more() const {
  if (!is_closed_) return true;
  return units_.size() > 1 || (units_.size() == 1 && done_ + 1 < units_.front().batches);
}

bool UnitQueue::wants_unit() const {
  if (is_closed_ || units_.size() > 1) return false;
  return units_.empty() || units_.front().batches - done_ <= 2;
}

std::vector<UnitProgress> UnitQueue::progress() const {
  std::vector<UnitProgress> progress(finished_.begin(), finished_.end());
  for (size_t i = 0; i < units_.size(); ++i) {
    progress.push_back({units_[i].id, i == 0 ? done_ : 0});
  }
  return progress;
}

}  // namespace slipstream
