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
#include "deploy/lab/event_queue.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "worker/client/push_encoder.h"
#include "worker/client/weights_arrival.h"
#include "worker/core/aggregator_use.h"
#include "worker/core/call_tries.h"
#include "worker/core/push_tries.h"

namespace slipstream {

/// Carries a client's calls to one shard, one at a time: the messages of each try, to the peer and
/// at the time that PushTries and CallTries decide.
///
/// Not thread-safe: one owner. `queue` and `network` must outlive it, and it must outlive the
/// queue's events.
class ShardLane {
 public:
  /// Is given each answer to a push, before its weights have arrived.
  using OnAnswer = std::function<absl::Status(const ExchangeAnswer&)>;

  /// Is called once all is over, with the header of the weights that have arrived, if any.
  using Done = std::function<void(const absl::StatusOr<std::optional<WeightsHeader>>&)>;

  /// `group`: that of the aggregator that takes pushes to the shard; nothing if there is none.
  /// `history`: gets the tries of pushes; null if nobody asks for them.
  ShardLane(ShardId shard, const std::shared_ptr<Process>& process, EventQueue& queue,
            Network& network, const PushTries::Options& options,
            std::optional<uint32_t> group = std::nullopt, History* history = nullptr);

  /// Until `done`, the contents of `values` and the memory of `weights` must stay valid.
  void Initialize(const InitializeHeader& header, std::span<const float> values, Done done);
  void Pull(const PullRequest& request, std::span<float> weights, Done done);

  /// Encodes with `encoder`, unless it is null. The encoder must outlive the call, and is told the
  /// outcome. `holds_base`: whether `weights` are those of the push's base.
  void Exchange(const PushHeader& header, std::span<const float> values, PushEncoder* encoder,
                std::span<float> weights, bool holds_base, OnAnswer on_answer, Done done);

  bool is_busy() const { return done_ != nullptr; }

  /// Ends the stream that stays open between calls. REQUIRES: !is_busy().
  void HangUp();

  /// Gives up the current call. Its callbacks are not called any more.
  void Close() { done_ = nullptr; }

 private:
  void Begin(StreamKind kind, std::span<const float> values, std::span<float> weights, Done done);
  void Try();
  void Open(StreamPtr& stream, std::optional<uint32_t> group);
  std::vector<grpc::ByteBuffer> Request() const;

  /// Returns all chunks of the push, from its begin on.
  std::vector<grpc::ByteBuffer> PushChunks() const;
  void OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message);
  void OnExchangeMessage(const grpc::ByteBuffer& message);

  /// Hands an answer over. Returns false if that was the end of the call.
  bool Deliver(const ExchangeAnswer& answer);
  void NoteAggregator(std::optional<PushOutcome> outcome);
  void OnEnd(const StreamPtr& stream, const absl::Status& status);
  void Repeat(const absl::StatusOr<PushTries::Next>& next);
  void End(const absl::StatusOr<std::optional<WeightsHeader>>& result);

  // Constant after construction.
  const ShardId shard_;
  const std::shared_ptr<Process> process_;
  EventQueue& queue_;
  Network& network_;
  const PushTries::Options options_;
  const std::optional<uint32_t> group_;
  History* const history_;

  // The current call.
  StreamKind kind_ = StreamKind::kExchange;
  InitializeHeader initialize_;
  PullRequest pull_;
  PushHeader push_;
  PushEncoder* encoder_ = nullptr;
  std::span<const float> values_;
  std::optional<WeightsArrival> weights_;
  OnAnswer on_answer_;
  Done done_;
  std::optional<PushTries> push_tries_;  // Of an exchange; else:
  std::optional<CallTries> call_tries_;
  bool is_repetition_ = false;
  bool is_pausing_ = false;  // Before the next try.

  // The current try.
  bool is_to_aggregator_ = false;
  std::optional<PushReply> reply_;
  bool is_answered_ = false;

  StreamPtr stream_;  // For exchanges, it stays open between calls.
  AggregatorUse use_;
  StreamPtr aggregator_;  // The stream there, which stays open until a push has no values.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SHARD_LANE_H_
