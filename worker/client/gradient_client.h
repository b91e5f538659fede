#ifndef SLIPSTREAM_WORKER_CLIENT_GRADIENT_CLIENT_H_
#define SLIPSTREAM_WORKER_CLIENT_GRADIENT_CLIENT_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/gradient_feed.h"
#include "worker/client/shard_exchange.h"
#include "worker/core/unit_queue.h"
#include "worker/core/work_news.h"

namespace slipstream {

/// The model as a training loop sees it: weights arrive, and gradients leave.
///
///   while (true) {
///     StatusOr<Step> step = client.Advance();   // Weights to compute a gradient from.
///     … the batches that *step names, or a unit of work for it, or the end …
///     GradientFeed& feed = client.BeginPush(0, {.batches = …, .examples = …});
///     … compute, and report final ranges to the feed …
///     client.FinishPush(0, trailer);               // Or AbortPush, if it must not count.
///   }
///
/// With a ParameterClient, gradients go to the servers, and weights come from them. With an
/// AllReduceClient, they go to the other workers, and each makes the same weights of them.
///
/// Not thread-safe: one owner, which computes; other threads may report ranges to a feed.
class GradientClient {
 public:
  /// Describes a push: the mini-batches that it stands for and their number of examples.
  struct Gradient {
    BatchRanges batches;
    uint32_t examples = 0;

    /// The caller's number for this step; Transfer repeats it.
    uint64_t step = 0;

    /// The same as PushHeader::label.
    uint64_t label = 0;

    /// See GradientFeed; may be empty.
    GradientFeed::LastChange last_change = {};
  };

  /// How the exchange of one step went, lane by lane in the order of shards. Lanes of shards to
  /// which nothing was pushed after this step have no times.
  struct Transfer {
    uint64_t step = 0;
    std::vector<LaneTimes> lanes;
  };

  /// The next action for the slot's weights, which have arrived or are arriving.
  struct Compute {
    BatchRanges batches;
  };
  struct AwaitUnit {};  // OnNews has to follow.
  struct Finished {};
  using Step = std::variant<Compute, AwaitUnit, Finished>;

  virtual ~GradientClient() = default;

  /// Prepares the slot's next gradient: waits for what became of its last one, and for weights to
  /// compute the next one from. Fails with the first failure of any call.
  virtual absl::StatusOr<Step> Advance(uint32_t slot = 0) = 0;

  /// Announces the gradient of the batches that Advance named; what the feed reports as final may
  /// leave at once. The feed may be used until the push is finished or aborted, one of which must
  /// follow.
  virtual GradientFeed& BeginPush(uint32_t slot, const Gradient& gradient) = 0;

  /// Completes the push: the whole gradient is final, and it counts.
  virtual absl::Status FinishPush(uint32_t slot, const PushTrailer& trailer) = 0;

  /// Aborts the push: the gradient must not count. Advance names its batches again, unless they are
  /// skipped.
  virtual void AbortPush(uint32_t slot) = 0;

  /// Marks the batches of the slot's aborted push as done without a gradient, because their values
  /// are unusable (not finite). Waits for the answers to older pushes.
  virtual void Skip(uint32_t slot) = 0;

  /// Waits until everything that was begun is done: all pushes are answered, and all weights have
  /// arrived.
  virtual absl::Status Drain() = 0;

  /// Heeds what the coordinator answered to a request for work. Before it goes on with a later
  /// stage of the run, it waits for everything that was begun, unless it goes on as it is.
  virtual absl::Status OnNews(const WorkNews& news) = 0;

  /// The wishes of the coordinator, as heartbeats bring them.
  struct Orders {
    /// No more work is to be begun.
    bool work_ends = false;

    /// The number of mini-batches of the next pushes; 0 if none is named.
    uint64_t steps = 0;
  };
  virtual void OnOrders(const Orders& orders) = 0;

  /// Notes that there is no work for now. The client need fetch nothing until a mini-batch begins.
  virtual void Rest() {}

  /// Returns the client's wish for work.
  virtual WorkWish wish() const = 0;

  /// The work that was done so far.
  struct Done {
    std::vector<UnitProgress> units;

    /// See WorkerCore.
    uint64_t split_pushes = 0;
  };
  virtual Done done() const = 0;

  /// Whether the next step computes from weights that are there when a push is finished. Otherwise
  /// its answer brings them.
  virtual bool goes_on() const = 0;

  /// Returns the transfers that ended since the last call, oldest first.
  virtual std::vector<Transfer> TakeTransfers() = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_GRADIENT_CLIENT_H_
