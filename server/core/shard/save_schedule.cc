#include "server/core/shard/save_schedule.h"

namespace slipstream {

bool SaveSchedule::Order(const SaveOrder& order, Version decided) {
  if (order.number <= order_.number) return false;
  order_ = order;
  if (order.version == Version{} || order.version == decided) is_due_ = true;
  return true;
}

bool SaveSchedule::IsTime(Version decided, bool is_round_empty, bool is_drained) const {
  const bool is_possible = is_round_empty && last_saved_ != decided;
  return is_possible && (is_due_ || is_drained);
}

void SaveSchedule::EndProcess(std::optional<Version> saved) {
  if (last_saved_ > saved) is_due_ = true;
  last_saved_ = saved;
}

}  // namespace slipstream
