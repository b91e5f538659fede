#ifndef SLIPSTREAM_TESTS_SIMULATION_SHARD_LANE_H_
#define SLIPSTREAM_TESTS_SIMULATION_SHARD_LANE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "tests/simulation/event_queue.h"
#include "tests/simulation/network.h"
#include "worker/client/push_encoder.h"
#include "worker/client/retries.h"
#include "worker/client/weights_arrival.h"

namespace slipstream {

/// Makes a worker's calls to one shard, one at a time, and repeats each until it has a final
/// answer. It plays the part of ShardClient and ShardExchange.
///
/// Pushes with values go to an aggregator first, if UseAggregator names one. A push that it does
/// not combine goes to the shard, and so does each push for a while after the aggregator has
/// failed.
///
/// Not thread-safe: one owner. `queue` and `network` must outlive it, and it must outlive the
/// queue's events.
class ShardLane {
 public:
  struct Answer {
    std::optional<PushReply> push;

    /// Set if the weights of that answer broke off, and the shard began a new life before it was
    /// asked again: its other answer.
    std::optional<PushReply> repeated;
    std::optional<WeightsHeader> weights;
  };
  using Done = std::function<void(const absl::StatusOr<Answer>&)>;

  ShardLane(ShardId shard, const std::shared_ptr<Process>& process, EventQueue& queue,
            Network& network, const RetryOptions& retry, uint64_t seed);

  /// Names the group whose aggregator takes pushes to the shard.
  void UseAggregator(uint32_t group) { group_ = group; }

  /// Until `done`, the contents of `values` and the memory of `weights` must stay valid.
  void Initialize(const InitializeHeader& header, std::span<const float> values, Done done);
  void Pull(const PullRequest& request, std::span<float> weights, Done done);

  /// Encodes with `encoder`, unless it is null. The encoder must outlive the call, and is told the
  /// outcome.
  void Exchange(const PushHeader& header, std::span<const float> values, PushEncoder* encoder,
                std::span<float> weights, Done done);

  bool is_busy() const { return done_ != nullptr; }

  /// Ends the stream that stays open between calls. REQUIRES: !is_busy().
  void HangUp();

  /// Gives up the current call. Its `done` is not called any more.
  void Close() { done_ = nullptr; }

 private:
  void Begin(StreamKind kind, std::span<const float> values, std::span<float> weights, Done done);
  void Try();
  void Open(StreamPtr& stream, std::optional<uint32_t> group);

  /// Returns whether the current call may go to the aggregator now.
  bool MayCombine() const;
  std::vector<grpc::ByteBuffer> Request() const;

  /// Returns all chunks of the push, from its begin on.
  std::vector<grpc::ByteBuffer> PushChunks() const;
  void OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message);
  void OnExchangeMessage(const grpc::ByteBuffer& message);
  void OnEnd(const StreamPtr& stream, const absl::Status& status);
  void OnAggregatorEnd();
  void Succeed();
  void Fail(const absl::Status& status);
  void TryLater(absl::Duration wait);

  // Constant after construction.
  const ShardId shard_;
  const std::shared_ptr<Process> process_;
  EventQueue& queue_;
  Network& network_;
  const RetryOptions retry_;
  const uint64_t seed_;
  std::optional<uint32_t> group_;  // Set once, by UseAggregator.

  // The current call.
  StreamKind kind_ = StreamKind::kExchange;
  InitializeHeader initialize_;
  PullRequest pull_;
  PushHeader push_;
  PushEncoder* encoder_ = nullptr;
  std::span<const float> values_;
  std::span<float> weights_;
  Done done_;
  bool is_pausing_ = false;        // Before the next try.
  bool goes_to_shard_ = false;     // The aggregator has not combined this push.
  bool is_to_aggregator_ = false;  // The current try.
  std::optional<RetrySchedule> schedule_;
  Answer answer_;

  /// The answer of an earlier try to this push, whose weights did not come.
  std::optional<PushReply> first_;
  std::optional<WeightsArrival> arrival_;

  StreamPtr stream_;  // For exchanges, it stays open between calls.

  // The stream to the aggregator, which stays open until a push has no values; and until when the
  // aggregator is left alone after a failure, and for how long after the next.
  StreamPtr aggregator_;
  absl::Time aggregator_rests_until_ = absl::InfinitePast();
  absl::Duration aggregator_rest_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SHARD_LANE_H_
