#include "server/core/outstanding_pulls.h"

#include <algorithm>

namespace slipstream {

void OutstandingPulls::MakeRoom(WorkerId worker) {
  const auto member = bases_.find(worker);
  if (member == bases_.end() || member->second.size() < per_member_max_) return;
  member->second.pop_back();
  if (member->second.empty()) bases_.erase(member);
}

void OutstandingPulls::Add(WorkerId worker, Version base) {
  MakeRoom(worker);
  std::deque<Version>& bases = bases_[worker];
  bases.insert(std::ranges::upper_bound(bases, base), base);
}

void OutstandingPulls::Settle(WorkerId worker, Version base) {
  const auto member = bases_.find(worker);
  if (member == bases_.end()) return;
  std::deque<Version>& bases = member->second;
  while (!bases.empty() && bases.front() < base) bases.pop_front();
  if (!bases.empty() && bases.front() == base) bases.pop_front();
  if (bases.empty()) bases_.erase(member);
}

void OutstandingPulls::KeepMembers(const View& before, const View& view) {
  std::erase_if(bases_, [&](const auto& item) {
    const Member* was = before.Find(item.first);
    const Member* is = view.Find(item.first);
    return is == nullptr || (was != nullptr && was->incarnation != is->incarnation);
  });
}

}  // namespace slipstream
