#include "server/status/stalled_workers.h"

#include <algorithm>
#include <utility>

namespace slipstream {
namespace {

constexpr double kUsualFactor = 2;

}  // namespace

std::vector<StalledWorkers::Change> StalledWorkers::Update(std::span<const Sign> signs,
                                                           absl::Time now) {
  std::vector<Change> changes;
  std::map<WorkerId, Member> members;
  for (const Sign& sign : signs) {
    const auto known = members_.find(sign.worker);
    const bool is_known = known != members_.end() && known->second.incarnation == sign.incarnation;
    Member& member = members[sign.worker];
    member = is_known ? known->second : Member{.incarnation = sign.incarnation, .last_act = now};
    if (sign.last_act > member.last_act) {
      const absl::Duration idle = sign.last_act - member.last_act;
      member.longest_idle = std::max(member.longest_idle, idle);
      member.last_act = sign.last_act;
      if (std::exchange(member.is_stalled, false)) changes.push_back({sign.worker, false, idle});
    }
    const absl::Duration idle = now - member.last_act;
    if (member.is_stalled || idle <= LimitOf(sign, member)) continue;
    member.is_stalled = true;
    changes.push_back({sign.worker, true, idle});
  }
  members_ = std::move(members);
  return changes;
}

absl::Duration StalledWorkers::LimitOf(const Sign& sign, const Member& member) const {
  const absl::Duration usual = std::max(options_.idle_min, kUsualFactor * member.longest_idle);
  const bool may_take_long = !sign.has_pushed || sign.measures;
  return may_take_long ? std::max(usual, options_.first_idle_max) : usual;
}

absl::Duration StalledWorkers::IdleFor(WorkerId worker, absl::Time now) const {
  const auto member = members_.find(worker);
  if (member == members_.end()) return absl::ZeroDuration();
  return std::max(absl::ZeroDuration(), now - member->second.last_act);
}

bool StalledWorkers::IsStalled(WorkerId worker) const {
  const auto member = members_.find(worker);
  return member != members_.end() && member->second.is_stalled;
}

}  // namespace slipstream
