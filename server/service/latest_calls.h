#ifndef SLIPSTREAM_SERVER_SERVICE_LATEST_CALLS_H_
#define SLIPSTREAM_SERVER_SERVICE_LATEST_CALLS_H_

#include <grpc/grpc.h>

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Leaves each member one call for what it does one at a time, the newest: that is of a sender who
/// has given the older one up, perhaps before this end can know. What that still holds (the room of
/// half a push, a version nobody reads, a buffer for weights) is free at once, and a member that
/// opens ever new calls holds no more than one does.
///
/// A call that is ended so fails with UNAVAILABLE, for two calls may arrive in the wrong order.
///
/// Thread-safe: guarded by its own mutex. Must outlive its entries.
class LatestCalls {
 public:
  /// One of the gradients that a member may have under way, in whichever of its lives.
  struct Sender {
    WorkerId worker{};
    uint32_t slot = 0;

    friend auto operator<=>(const Sender&, const Sender&) = default;
  };

  /// A call's part in it; a member of the call. Thread-safe but for Claim, which is for who reads
  /// the call's messages.
  class Entry {
   public:
    Entry(LatestCalls& calls, grpc_call* call);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    /// This call brings something of the sender, who was found to be a member: ends the other call
    /// that did so last. A call claims each sender once; later claims are nothing new.
    void Claim(const Sender& sender);

   private:
    LatestCalls& calls_;
    grpc_call* const call_;
    std::vector<Sender> claimed_;
  };

 private:
  Mutex mutex_;
  std::map<Sender, grpc_call*> latest_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_SERVICE_LATEST_CALLS_H_
