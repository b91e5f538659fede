#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CALLS_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CALLS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/values_codec.h"
#include "deploy/lab/lab_context.h"
#include "deploy/lab/virtual_process.h"
#include "server/data_plane/shard.h"
#include "worker/client/shard_exchange.h"

namespace slipstream {

/// A virtual worker's calls to the shards. Those to one shard are made one after another, in the
/// order in which they were asked for. A call takes the time of its messages on the links; one that
/// the shard refuses for now is made again.
///
/// Not thread-safe: one owner.
class VirtualCalls {
 public:
  /// The values of a push to one shard, which may be sent several times.
  struct Payload {
    std::shared_ptr<ReceivedValues> values;  // Null for a push without values.
    uint64_t bytes = 0;                      // What they take on the way.
  };

  /// Takes an answer that has come whole.
  using OnPulled = std::function<void(const PullRequest& request, const Answer& answer)>;
  using OnPushed =
      std::function<void(const PushHeader& header, const Answer& answer, const LaneTimes& times)>;

  /// `on_failure` is called if a shard refuses a pull for good. All arguments must outlive the
  /// object, which must outlive the process.
  VirtualCalls(const LabContext& lab, VirtualProcess& process, WorkerId worker,
               std::function<void(const absl::Status&)> on_failure);

  /// Ends the calls that shards have not answered.
  ~VirtualCalls();

  /// `request` and `header` are called when the shard's turn has come. The next call to the shard
  /// begins once the last function has returned.
  void Pull(ShardId shard, std::function<PullRequest()> request, OnPulled on_pulled);
  void Push(ShardId shard, std::function<PushHeader()> header, Payload payload, OnPushed on_pushed);

 private:
  struct PullCall {
    ShardId shard{};
    PullRequest request;
    OnPulled on_pulled;
  };
  struct PushCall {
    ShardId shard{};
    PushHeader header;
    Payload payload;
    OnPushed on_pushed;
    LaneTimes times;
  };

  /// The calls to a shard.
  struct Lane {
    std::deque<std::function<void()>> waiting;
    bool is_busy = false;
    CallId call{};  // At the shard; 0 if it has none.
  };

  void Begin(ShardId shard, std::function<void()> call);
  void End(ShardId shard);
  void Send(const std::shared_ptr<PullCall>& call);
  void Send(const std::shared_ptr<PushCall>& call);
  void OnAnswer(const std::shared_ptr<PullCall>& call, Answer answer);
  void OnAnswer(const std::shared_ptr<PushCall>& call, Answer answer);

  /// Returns when the answer, which is given now, has come to the worker.
  absl::Time Arrival(ShardId shard, const Answer& answer);
  VirtualServer& ServerOf(ShardId shard) const { return *lab_.servers[Value(shard)]; }

  const LabContext& lab_;
  VirtualProcess& process_;
  const WorkerId worker_;
  const std::function<void(const absl::Status&)> on_failure_;
  std::vector<Lane> lanes_;  // By shard.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_CALLS_H_
