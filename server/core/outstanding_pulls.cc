#include "server/core/outstanding_pulls.h"

#include <algorithm>

namespace slipstream {

void OutstandingPulls::Add(WorkerId worker, uint32_t slot, Version base) {
  const auto [found, is_new] = bases_.try_emplace({worker, slot}, base);
  if (!is_new) found->second = std::min(found->second, base);
}

std::optional<Version> OutstandingPulls::Find(WorkerId worker, uint32_t slot) const {
  const auto found = bases_.find({worker, slot});
  return found == bases_.end() ? std::nullopt : std::optional(found->second);
}

bool OutstandingPulls::HasBeside(WorkerId worker, uint32_t slot) const {
  return std::ranges::any_of(bases_, [worker, slot](const auto& item) {
    return item.first.first == worker && item.first.second != slot;
  });
}

void OutstandingPulls::KeepMembers(const View& before, const View& view) {
  std::erase_if(bases_, [&](const auto& item) {
    const WorkerId worker = item.first.first;
    const Member* was = before.Find(worker);
    const Member* is = view.Find(worker);
    return is == nullptr || (was != nullptr && was->incarnation != is->incarnation);
  });
}

}  // namespace slipstream
