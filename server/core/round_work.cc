#include "server/core/round_work.h"

#include <algorithm>

namespace slipstream {

RoundWork RoundWorkPlan::For(WorkerId worker, const std::vector<WorkerId>& members) {
  if (finished()) return {RoundWork::Kind::kFinished, 0};
  if (named_.empty()) NameBatches(members);
  const auto found = named_.find(worker);
  if (found == named_.end()) return {RoundWork::Kind::kExcused, 0};
  return {RoundWork::Kind::kCompute, found->second};
}

void RoundWorkPlan::NameBatches(const std::vector<WorkerId>& members) {
  std::vector<WorkerId> order = members;
  if (!again_.empty()) {
    std::stable_partition(order.begin(), order.end(),
                          [this](WorkerId worker) { return did_last_.contains(worker); });
  }
  for (const WorkerId worker : order) {
    if (!again_.empty()) {
      named_[worker] = again_.extract(again_.begin()).value();
    } else if (next_batch_ < batches_total_) {
      named_[worker] = next_batch_++;
    }
  }
}

void RoundWorkPlan::NextRound(const std::function<bool(WorkerId)>& has_done) {
  if (!named_.empty()) did_last_.clear();
  for (const auto& [worker, batch] : named_) {
    if (has_done(worker)) {
      ++batches_done_;
      did_last_.insert(worker);
    } else if (!is_closed_) {
      again_.insert(batch);
    }
  }
  named_.clear();
}

void RoundWorkPlan::Close() {
  is_closed_ = true;
  again_.clear();
  batches_total_ = std::min(batches_total_, next_batch_);
}

}  // namespace slipstream
