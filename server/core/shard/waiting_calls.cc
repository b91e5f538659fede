#include "server/core/shard/waiting_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {

Reader ReaderOf(const PullRequest& request) {
  if (!request.identity.has_value()) return std::nullopt;
  return std::pair(request.identity->worker, request.identity->incarnation);
}

std::vector<PendingCall> WaitingCalls::all() const {
  std::vector<PendingCall> all;
  for (const auto& [age, call] : calls_) all.push_back(call);
  return all;
}

void WaitingCalls::Add(PendingCall call) {
  File(next_age_, call);
  calls_.emplace_hint(calls_.end(), next_age_++, std::move(call));
}

bool WaitingCalls::Cancel(CallId call) {
  const auto found = std::ranges::find_if(
      calls_, [call](const auto& waiting) { return waiting.second.call == call; });
  if (found == calls_.end()) return false;
  Unfile(found->first, found->second);
  calls_.erase(found);
  return true;
}

size_t WaitingCalls::Pulls(const Reader& reader) const {
  const auto found = pulls_.find(reader);
  return found == pulls_.end() ? 0 : found->second;
}

size_t WaitingCalls::Pulls() const {
  size_t all = 0;
  for (const auto& [reader, pulls] : pulls_) all += pulls;
  return all;
}

void WaitingCalls::File(Age age, const PendingCall& call) {
  if (call.exact.has_value()) {
    by_version_.emplace(Version{}, age);
  } else if (call.condition.slowest > WorkerClock{}) {
    by_clock_.emplace(call.condition.slowest, age);
  } else {
    by_version_.emplace(call.condition.version, age);
  }
  if (call.is_pull) ++pulls_[call.reader];
}

void WaitingCalls::Unfile(Age age, const PendingCall& call) {
  by_version_.erase({call.exact.has_value() ? Version{} : call.condition.version, age});
  by_clock_.erase({call.condition.slowest, age});
  if (!call.is_pull) return;
  const auto pulls = pulls_.find(call.reader);
  if (--pulls->second == 0) pulls_.erase(pulls);
}

std::vector<WaitingCalls::Age> WaitingCalls::AgesWithin(const Reached& reached) const {
  std::vector<Age> ages;
  for (const auto& [version, age] : by_version_) {
    if (version > reached.version) break;
    ages.push_back(age);
  }
  for (const auto& [clock, age] : by_clock_) {
    if (clock > reached.slowest) break;
    ages.push_back(age);
  }
  std::ranges::sort(ages);
  return ages;
}

void WaitingCalls::CheckInvariants() const {
  PS_CHECK(Fault().empty());
  WaitingCalls same;
  for (const auto& [age, call] : calls_) {
    same.File(age, call);
    PS_CHECK(age < next_age_);
  }
  PS_CHECK(by_clock_ == same.by_clock_ && by_version_ == same.by_version_);
  PS_CHECK(pulls_ == same.pulls_);
}

std::string WaitingCalls::Fault() const {
  std::set<CallId> names;
  for (const auto& [age, call] : calls_) {
    if (!names.insert(call.call).second) return "two calls that wait have one name";
    if (call.is_pull == call.push.has_value()) return "a call that waits is no push and no pull";
    for (const PendingCall::Trainer& trainer : call.trainers) {
      if (call.parts > 0 && trainer.part >= call.parts) {
        return fmt::format("a call that waits is for part {} of {}", trainer.part, call.parts);
      }
    }
  }
  return "";
}

}  // namespace slipstream
