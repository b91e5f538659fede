#ifndef SLIPSTREAM_SERVER_LISTEN_LATEST_CALLS_H_
#define SLIPSTREAM_SERVER_LISTEN_LATEST_CALLS_H_

#include <grpc/grpc.h>

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Leaves each member one open call of each kind. When a newer call arrives, its sender has given
/// up the older one (perhaps after a broken connection that this end has not noticed), so the older
/// call is ended. What that call held (the memory of half a push, a version that nobody reads, a
/// buffer for weights) is free at once, and a member that opens ever new calls holds no more than
/// one call does.
///
/// The ended call fails with UNAVAILABLE, because two calls may arrive in the wrong order.
///
/// Thread-safe: guarded by its own mutex. Must outlive its entries.
class LatestCalls {
 public:
  /// The sender of a call: a worker, in any incarnation, and one of its slots of gradients in
  /// flight.
  struct Sender {
    WorkerId worker{};
    uint32_t slot = 0;

    friend auto operator<=>(const Sender&, const Sender&) = default;
  };

  /// The entry of one call; a member of the call's object. Thread-safe but for Claim, which is for
  /// the code that reads the call's messages.
  class Entry {
   public:
    Entry(LatestCalls& calls, grpc_call* call);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    /// Notes that this call brings something from the sender, which was found to be a member. Ends
    /// the other call that did so last. A call claims each sender once; further claims have no
    /// effect.
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

#endif  // SLIPSTREAM_SERVER_LISTEN_LATEST_CALLS_H_
