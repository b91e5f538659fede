#include "server/core/shard/member_pace.h"

#include <cstdint>
#include <limits>

namespace slipstream {

WorkerClock MemberPace::Reached(bool is_free) const {
  if (is_free || !slowest_.has_value()) return WorkerClock{std::numeric_limits<uint64_t>::max()};
  return *slowest_;
}

void MemberPace::Settle(PullCondition& condition, bool is_free, Version decided) const {
  if (condition.slowest == WorkerClock{}) return;
  if (Reached(is_free) < condition.slowest) return;
  // The pushes of the slowest members are decided, and the answer has to contain them.
  condition = {.version = std::max(condition.version, decided)};
}

}  // namespace slipstream
