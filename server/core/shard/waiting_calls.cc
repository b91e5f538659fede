#include "server/core/shard/waiting_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace slipstream {

Reader ReaderOf(const PullRequest& request) {
  if (!request.identity.has_value()) return std::nullopt;
  return std::pair(request.identity->worker, request.identity->incarnation);
}

bool WaitingCalls::Cancel(CallId call) {
  return std::erase_if(calls_,
                       [call](const PendingCall& waiting) { return waiting.call == call; }) > 0;
}

size_t WaitingCalls::Pulls(const Reader& reader) const {
  return static_cast<size_t>(std::ranges::count_if(calls_, [&reader](const PendingCall& call) {
    return call.is_pull && call.reader == reader;
  }));
}

size_t WaitingCalls::Pulls() const {
  return static_cast<size_t>(std::ranges::count_if(calls_, &PendingCall::is_pull));
}

std::string WaitingCalls::Fault() const {
  std::set<CallId> names;
  for (const PendingCall& call : calls_) {
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
