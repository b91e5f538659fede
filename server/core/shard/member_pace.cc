#include "server/core/shard/member_pace.h"

namespace slipstream {

void MemberPace::Settle(PullCondition& condition, bool is_free, Version decided) const {
  if (condition.slowest == WorkerClock{}) return;
  const bool nobody_is_awaited = !slowest_.has_value() || is_free;
  if (!nobody_is_awaited && *slowest_ < condition.slowest) return;
  // The pushes of the slowest members are decided, and the answer has to contain them.
  condition = {.version = std::max(condition.version, decided)};
}

}  // namespace slipstream
