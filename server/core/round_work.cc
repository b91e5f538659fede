#include "server/core/round_work.h"

#include <algorithm>

namespace slipstream {

RoundWork RoundWorkPlan::For(WorkerId worker, const std::vector<WorkerId>& members) {
  if (finished()) return {RoundWork::Kind::kFinished, 0};
  if (ranks_.empty()) ranks_ = members;
  const auto found = std::find(ranks_.begin(), ranks_.end(), worker);
  if (found == ranks_.end()) return {RoundWork::Kind::kExcused, 0};
  const uint64_t batch = first_batch_ + static_cast<uint64_t>(found - ranks_.begin());
  if (batch >= batches_total_) return {RoundWork::Kind::kExcused, 0};
  return {RoundWork::Kind::kCompute, batch};
}

void RoundWorkPlan::NextRound() {
  first_batch_ += ranks_.size();
  ranks_.clear();
}

void RoundWorkPlan::Close() {
  batches_total_ = std::min(batches_total_, first_batch_ + ranks_.size());
}

}  // namespace slipstream
