#ifndef SLIPSTREAM_SERVER_AGGREGATOR_PUSH_GROUP_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_PUSH_GROUP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/policy_rows.h"
#include "common/settings/run_spec.h"
#include "proto/status.pb.h"
#include "server/aggregator/combined_values.h"
#include "server/aggregator/part_answers.h"
#include "server/core/orders.h"
#include "server/core/shard/combiner.h"
#include "server/data_plane/push_assembly.h"
#include "server/data_plane/shard.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// The pushes of a group of workers at their aggregator, from the header to the answer: an
/// aggregator without the lock, the threads and the connections. Its Combiner decides which pushes
/// go together.
///
/// Not thread-safe: one owner, which serialises calls. Time comes from the caller, and must not go
/// back.
class PushGroup {
 public:
  struct Options {
    RunSpec run;  // Has a tree.
    ShardId shard{};

    /// The group of workers; below ClusterSpec::groups().
    uint32_t group = 0;

    /// The most composites that may be on their way at once. What is beyond is sent back.
    uint32_t composites_max = 1;
  };

  explicit PushGroup(Options options);

  /// Takes orders that are newer than those before.
  void OnOrders(const ServerOrders& orders);
  const ServerOrders& orders() const { return orders_; }

  /// Returns whether the identity is that of a member of the group, or may be one whose view is on
  /// its way.
  bool MayBeMember(const Identity& identity) const;
  bool IsMember(const Identity& identity) const;

  // Pushes. A call is named as at a shard, and has one push at a time.

  /// Decides whether the values behind a header are wanted. `lack`: why none are just now; empty if
  /// the aggregator can do its work.
  BegunPush BeginPush(const PushHeader& header, std::string_view lack);

  /// Takes a push that is complete. Returns why it is sent back; nothing if `call` is answered
  /// later.
  std::optional<PushReply> FinishPush(CallId call, PushAssembly& push, absl::Time now);

  /// Gives up a push that was begun and will not be complete.
  void AbandonPush(const PushHeader& header);

  /// Returns true if the call was waiting. Then it waits no more and gets no answer.
  bool Cancel(CallId call, absl::Time now);

  /// Notes that a call is over, and neither pushes nor waits any more.
  void OnCallGone(CallId call);

  // Composites.

  /// A composite to be sent.
  struct Outgoing {
    Combiner::CompositeId id{};
    PushHeader header;
    std::vector<WeighedPayload> gradients;  // In the order of the header's parts.
    PolicyTraits::Weighing weighing = PolicyTraits::Weighing::kEqual;

    /// Not set if too many are on their way: it is to be answered with RESOURCE_EXHAUSTED.
    bool may_leave = true;
  };

  /// Returns the next composite to send; nothing if there is none now. OnAnswer has to follow.
  std::optional<Outgoing> Take(absl::Time now);

  /// Takes the answer to a composite; `weights` has the values of its weights, if it has any.
  /// RESOURCE_EXHAUSTED: it was not sent. Any other failure: the shard was not reached. Returns the
  /// answers that are to be given now. A worker whose answer is a refusal leaves the aggregator
  /// alone for a while.
  Answers OnAnswer(Combiner::CompositeId composite, absl::StatusOr<ExchangeAnswer> answer,
                   Weights weights, absl::Time now);

  /// Returns the answers that have waited long enough for others.
  Answers TakeHeld(absl::Time now);

  /// Returns when Take and TakeHeld are to be called though nothing has happened.
  absl::Time NextLook() const { return combiner_.NextLook(); }

  void Describe(v1::AggregatorStatus& status, absl::Time now) const;

 private:
  using PartId = Combiner::PartId;
  using CompositeId = Combiner::CompositeId;

  /// A complete push that was not answered.
  struct Waiting {
    std::optional<CallId> call;  // Empty if nobody waits for the answer any more.
    PushHeader header;
    uint64_t checksum = 0;
    PushPayload payload;  // Empty once it was taken.
  };

  /// A composite that was taken, and whose parts are not answered yet.
  struct Sent {
    PushHeader header;
    std::vector<PartId> parts;
    std::optional<CountedComposite> counted;
    absl::Status failure;  // Not OK if the shard was not reached.
  };

  /// Returns why a push is not taken; empty if it is.
  std::string_view FaultOf(const PushHeader& header) const;
  bool IsMember(const PushHeader& header) const;

  /// Sends a member's push back. Nobody waits for its next one.
  PushReply SendBack(WorkerId worker, std::string_view why);

  void NoteGeneration(Generation generation);

  /// Returns why the shard would not count the push at all; empty if it may.
  std::string_view FaultInGeneration(const PushHeader& header) const;

  /// Returns the traits of the policy that the run is in.
  PolicyTraits TraitsNow() const;

  /// Returns the answers to the parts of composites, which are forgotten.
  Answers TakeAnswers(const std::vector<CompositeId>& composites);

  const Options options_;
  const uint32_t workers_;  // The number of workers of the group.

  Combiner combiner_;
  ServerOrders orders_;
  Generation generation_{};  // The shard's newest generation, as the coordinator or the shard
                             // itself has said.
  uint64_t next_push_ = 1;
  uint64_t bytes_held_ = 0;  // Of pushes that were begun, until the shard has answered.
  uint32_t under_way_ = 0;   // Composites that were taken and not answered.
  std::map<PartId, Waiting> waiting_;
  std::map<CompositeId, Sent> sent_;
  std::map<CallId, WorkerId> callers_;  // Of the calls that have brought a push.

  // For status, since the start.
  uint64_t parts_ = 0;
  uint64_t composites_ = 0;
  uint64_t sent_back_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_PUSH_GROUP_H_
