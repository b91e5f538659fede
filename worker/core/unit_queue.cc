#include "worker/core/unit_queue.h"

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {

void UnitQueue::Add(const WorkUnit& unit) {
  PS_CHECK(unit.batches > 0);
  if (is_closed_) return;
  PS_CHECK(units_.size() <= depth_);
  units_.push_back(unit);
}

std::optional<uint64_t> UnitQueue::batch(size_t ahead) const {
  uint64_t before = done_ + ahead;  // Mini-batches of the units from here on that come first.
  for (const WorkUnit& unit : units_) {
    if (before < unit.batches) return unit.first + before;
    before -= unit.batches;
  }
  return std::nullopt;
}

void UnitQueue::Done() {
  PS_CHECK(!units_.empty());
  ++done_;
  FinishFirstIfDone();
}

void UnitQueue::DropAllBut(uint64_t under_way) {
  is_closed_ = true;
  uint64_t kept = done_ + under_way;
  for (WorkUnit& unit : units_) {
    unit.batches = std::min(unit.batches, kept);
    kept -= unit.batches;
  }
  while (!units_.empty() && units_.back().batches == 0) units_.pop_back();
  FinishFirstIfDone();
}

void UnitQueue::FinishFirstIfDone() {
  if (units_.empty() || done_ < units_.front().batches) return;
  finished_.push_back({units_.front().id, done_});
  if (finished_.size() > kFinishedUnitsTold) finished_.pop_front();
  units_.pop_front();
  done_ = 0;
}

uint64_t UnitQueue::left() const {
  uint64_t batches = 0;
  for (const WorkUnit& unit : units_) batches += unit.batches;
  return batches - done_;
}

bool UnitQueue::wants_unit() const {
  return !is_closed_ && units_.size() <= depth_ && left() <= depth_ + 1;
}

std::vector<UnitProgress> UnitQueue::progress() const {
  std::vector<UnitProgress> progress(finished_.begin(), finished_.end());
  for (size_t i = 0; i < units_.size(); ++i) {
    progress.push_back({units_[i].id, i == 0 ? done_ : 0});
  }
  return progress;
}

}  // namespace slipstream
