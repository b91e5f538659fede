#include "server/core/shard/round_work.h"

#include <algorithm>

namespace slipstream {

RoundWork RoundWorkPlan::For(WorkerId worker, const std::vector<WorkerId>& members) {
  if (finished()) return {.kind = RoundWork::Kind::kFinished};
  if (named_.empty()) NameBatches(members);
  const auto found = named_.find(worker);
  if (found == named_.end()) return {.kind = RoundWork::Kind::kExcused};
  return {RoundWork::Kind::kCompute, found->second};
}

std::optional<BatchRange> RoundWorkPlan::LastOf(WorkerId worker) const {
  const auto found = did_last_.find(worker);
  return found == did_last_.end() ? std::nullopt : std::optional(found->second);
}

void RoundWorkPlan::NameBatches(const std::vector<WorkerId>& members) {
  std::vector<WorkerId> order = members;
  if (!again_.empty()) {
    std::stable_partition(order.begin(), order.end(),
                          [this](WorkerId worker) { return did_last_.contains(worker); });
  }
  for (const WorkerId worker : order) {
    if (!again_.empty()) {
      named_[worker] = again_.extract(again_.begin()).mapped();
    } else if (next_batch_ < end_) {
      const BatchRange next = {next_batch_, std::min(quantum_, end_ - next_batch_)};
      named_[worker] = next;
      next_batch_ += next.count;
    }
  }
}

void RoundWorkPlan::NextRound(const std::function<bool(WorkerId)>& has_done) {
  if (!named_.empty()) did_last_.clear();
  for (const auto& [worker, batches] : named_) {
    if (has_done(worker)) {
      batches_done_ += batches.count;
      did_last_[worker] = batches;
    } else if (!is_closed_) {
      again_[batches.first] = batches;
    }
  }
  named_.clear();
}

void RoundWorkPlan::Close() {
  is_closed_ = true;
  again_.clear();
  end_ = std::min(end_, next_batch_);
}

void RoundWorkPlan::EndBy(uint64_t end, uint64_t per_epoch) {
  const uint64_t epochs_begun = (next_batch_ + per_epoch - 1) / per_epoch;
  end_ = std::min(end_, std::max(end, epochs_begun * per_epoch));
}

}  // namespace slipstream
