#include "server/status/step_times.h"

#include <algorithm>
#include <vector>

namespace slipstream {
namespace {

absl::Duration Median(const std::deque<absl::Duration>& window) {
  if (window.empty()) return absl::ZeroDuration();
  std::vector<absl::Duration> sorted(window.begin(), window.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace

void StepTimes::OnView(const View& view, absl::Time now) {
  std::map<WorkerId, Member> members;
  for (const auto& member : view.members) {
    const auto known = members_.find(member.worker);
    if (known != members_.end() && known->second.incarnation == member.incarnation) {
      members.insert(members_.extract(known));
    } else {
      members[member.worker] = {.incarnation = member.incarnation, .last_act = now};
    }
  }
  members_ = std::move(members);
}

void StepTimes::OnAsked(WorkerId worker, absl::Time now) {
  const auto member = members_.find(worker);
  if (member == members_.end()) return;
  member->second.last_act = now;
  member->second.waits = true;
}

void StepTimes::OnPushed(WorkerId worker, absl::Time now) {
  const auto member = members_.find(worker);
  if (member == members_.end()) return;
  member->second.last_act = now;
  member->second.waits = false;
}

void StepTimes::OnServed(WorkerId worker, Version version, absl::Time now) {
  const auto member = members_.find(worker);
  if (member == members_.end()) return;
  member->second.last_act = now;
  member->second.waits = false;
  auto& unanswered = member->second.unanswered;
  const auto is_it = [version](const auto& item) { return item.first == version; };
  // If a lost answer is given again, the step began with the first one.
  if (std::ranges::any_of(unanswered, is_it)) return;
  unanswered.emplace_back(version, now);
  if (unanswered.size() > kVersionsKept) unanswered.pop_front();
}

void StepTimes::OnGradient(WorkerId worker, Version base, absl::Time now) {
  const auto member = members_.find(worker);
  if (member == members_.end()) return;
  for (const auto& [version, since] : member->second.unanswered) {
    if (version != base) continue;
    ++member->second.steps;
    auto& window = member->second.window;
    window.push_back(std::max(absl::ZeroDuration(), now - since));
    if (window.size() > kWindowSteps) window.pop_front();
  }
  OnExcuse(worker, base);
}

void StepTimes::OnExcuse(WorkerId worker, Version base) {
  const auto member = members_.find(worker);
  if (member == members_.end()) return;
  std::erase_if(member->second.unanswered, [base](const auto& item) { return item.first <= base; });
}

std::map<WorkerId, StepTimes::Pace> StepTimes::Paces(absl::Time now) const {
  std::map<WorkerId, Pace> paces;
  for (const auto& [worker, member] : members_) {
    Pace& pace = paces[worker];
    pace.steps = member.steps;
    pace.step = Median(member.window);
    if (!member.waits) pace.idle = std::max(absl::ZeroDuration(), now - member.last_act);
    if (member.unanswered.empty()) continue;
    pace.holding = std::max(absl::ZeroDuration(), now - member.unanswered.front().second);
  }
  return paces;
}

}  // namespace slipstream
