#include "worker/core/unit_queue.h"

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {

void UnitQueue::Add(const WorkUnit& unit) {
  PS_CHECK(unit.batches > 0);
  if (is_closed_) return;
  PS_CHECK(units_.size() <= depth_ + 1);
  if (!unit.came_late) LearnFromWait();
  units_.push_back(unit);
}

void UnitQueue::LearnFromWait() {
  const bool had_work = !finished_.empty() || !units_.empty();
  if (had_work && left() == 0) {
    ahead_ = std::min(2 * ahead_ + quantum_, kWantedMax);
  } else if (left() > (depth_ + 1) * quantum_ + ahead_ / 2) {
    ahead_ -= std::min(ahead_, std::max(quantum_, ahead_ / 4));
  }
}

BatchRanges UnitQueue::batches(uint64_t ahead) const {
  BatchRanges ranges;
  uint64_t before = done_ + ahead;  // Mini-batches to skip in the remaining units.
  uint64_t wanted = quantum_;
  for (const WorkUnit& unit : units_) {
    if (wanted == 0 || ranges.size() == kBatchRangesMax) break;
    const uint64_t skipped = std::min(before, unit.batches);
    const uint64_t taken = std::min(wanted, unit.batches - skipped);
    if (taken > 0) ranges.push_back({unit.first + skipped, taken});
    before -= skipped;
    wanted -= taken;
  }
  return ranges;
}

void UnitQueue::Done(uint64_t count) {
  while (count > 0) {
    PS_CHECK(!units_.empty());
    const uint64_t of_first = std::min(count, units_.front().batches - done_);
    done_ += of_first;
    count -= of_first;
    FinishFirstIfDone();
  }
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

uint64_t UnitQueue::wanted() const {
  const bool has_place = units_.size() <= depth_ + (ahead_ > 0 ? 1 : 0);
  const bool is_time = left() <= (depth_ + 1) * quantum_ + ahead_;
  return !is_closed_ && has_place && is_time ? std::max<uint64_t>(1, ahead_) : 0;
}

std::vector<UnitProgress> UnitQueue::progress() const {
  std::vector<UnitProgress> progress(finished_.begin(), finished_.end());
  for (size_t i = 0; i < units_.size(); ++i) {
    progress.push_back({units_[i].id, i == 0 ? done_ : 0});
  }
  return progress;
}

}  // namespace slipstream
