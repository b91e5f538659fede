#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_PEER_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_PEER_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/values_codec.h"
#include "server/data_plane/shard.h"

namespace slipstream {

/// A shard, or an aggregator before it, as its callers see it in virtual time: calls end with a
/// callback.
class VirtualPeer {
 public:
  /// Takes the answer to a call. It may call the peer.
  using OnAnswer = std::function<void(Answer)>;

  virtual ~VirtualPeer() = default;

  /// Returns a name for a call.
  CallId NewCall() { return CallId{++calls_}; }

  virtual void Pull(CallId call, const PullRequest& request, OnAnswer on_answer) = 0;

  /// Notes that the answer to the pull has left, or that its call is gone.
  virtual void FinishPull(CallId call, const PullRequest& request) = 0;

  /// Takes a push that has arrived whole. `bytes`: what the values took on the way. `values`: null
  /// for a push without values; they are left as they were if the answer asks for the push again.
  virtual void Push(CallId call, const PushHeader& header, ReceivedValues* values, uint64_t bytes,
                    OnAnswer on_answer) = 0;

  /// Notes that the caller is gone.
  virtual void Cancel(CallId call) = 0;

 private:
  uint64_t calls_ = 0;
};

/// The way from a caller to its peers, one for each shard.
struct VirtualRoute {
  std::function<VirtualPeer&(ShardId)> peer;

  // Return when a message of so many bytes that is sent at `now` has arrived: at the peer, and from
  // it at the caller.
  std::function<absl::Time(ShardId, uint64_t bytes, absl::Time now)> to;
  std::function<absl::Time(ShardId, uint64_t bytes, absl::Time now)> from;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_PEER_H_
