#include "server/listen/latest_calls.h"

#include <algorithm>
#include <utility>

#include "server/listen/end_call.h"

namespace slipstream {

LatestCalls::Entry::Entry(LatestCalls& calls, grpc_call* call) : calls_(calls), call_(call) {
  grpc_call_ref(call_);  // An entry may outlive what gRPC keeps for its call.
}

LatestCalls::Entry::~Entry() {
  {
    MutexLock lock(calls_.mutex_);
    for (const Sender& sender : claimed_) {
      const auto latest = calls_.latest_.find(sender);
      if (latest != calls_.latest_.end() && latest->second == call_) calls_.latest_.erase(latest);
    }
  }
  grpc_call_unref(call_);
}

void LatestCalls::Entry::Claim(const Sender& sender) {
  if (std::ranges::find(claimed_, sender) != claimed_.end()) return;
  claimed_.push_back(sender);
  grpc_call* older = nullptr;
  {
    MutexLock lock(calls_.mutex_);
    older = std::exchange(calls_.latest_[sender], call_);
    if (older != nullptr) grpc_call_ref(older);
  }
  if (older == nullptr) return;
  // Not a warning: this is usual after a broken connection, and a member can cause it at will.
  EndCall(older, "SUPERSEDED: its sender has opened another call", spdlog::level::debug);
  grpc_call_unref(older);
}

}  // namespace slipstream
