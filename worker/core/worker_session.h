#ifndef SLIPSTREAM_WORKER_CORE_WORKER_SESSION_H_
#define SLIPSTREAM_WORKER_CORE_WORKER_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/shard_messages.h"
#include "worker/core/work_news.h"
#include "worker/core/worker_core.h"

namespace slipstream {

/// A worker's exchanges with all shards: the headers of its pulls and pushes, and what each answer
/// changes. WorkerCore decides which of them are due; PushTries, how often one is sent.
///
/// A slot's push is begun for all shards at once, and goes to each in an exchange of its own; those
/// of some shards may come earlier than others (SendTo). A shard has one exchange at a time:
///
///     … do what session.Next(slot) says, once it says something …
///     session.BeginPush(slot, gradient);
///     session.SendTo(slot, shards);
///       PushHeader header = session.BeginExchange(shard, slot);
///       … send it; for each answer that PushTries hands over: session.OnAnswer(shard, answer) …
///       session.OnExchangeOver(shard, true);      // All weights of the last answer have arrived.
///
/// Not thread-safe: one owner, which serialises calls.
class WorkerSession {
 public:
  struct Options {
    Identity identity;

    /// The fingerprint of the map that cuts the model.
    uint64_t shard_map = 0;

    /// The kind of values that are pushed.
    PushKind pushes = PushKind::kGradient;
    WorkerCore::Options core;
  };

  /// The mini-batches that a push stands for, and their number of examples.
  struct Gradient {
    BatchRanges batches;
    uint32_t examples = 0;

    /// The same as PushHeader::label.
    uint64_t label = 0;
  };

  explicit WorkerSession(const Options& options);

  /// Returns the slot's next action. Nothing while it has to wait: for the answers to its push, or,
  /// where the action is a call, for the end of an exchange of the slot with one of these shards.
  /// The shard may be asked again, because its weights broke off, and its next answer may change
  /// what is due.
  std::optional<WorkerCore::Action> Next(uint32_t slot) const;

  /// Heeds what the coordinator answered to a request for work. REQUIRES: as WorkerCore's functions
  /// for it; if a stage does not go on as it is, no exchange is under way, whose answer would be of
  /// the stage before.
  void OnNews(const WorkNews& news);

  /// Units of work and figures. Answers of shards come through this session alone.
  WorkerCore& core() { return core_; }
  const WorkerCore& core() const { return core_; }

  const std::vector<ShardId>& shards() const { return all_; }

  // A slot's push.

  /// Begins the push of the batches that the core names for the slot, unless one was begun whose
  /// values have yet to go to some shards. If weights were replaced since the core named them, it
  /// asks for something else, and the push has to be aborted.
  void BeginPush(uint32_t slot, const Gradient& gradient);

  /// Returns whether a push was begun that has yet to go to some shards.
  bool is_sending(uint32_t slot) const { return !slots_.at(slot).unsent.empty(); }

  /// Notes that the values go to these shards now. REQUIRES: they are among unsent().
  void SendTo(uint32_t slot, const std::vector<ShardId>& shards);

  /// The shards to which the slot's push has yet to go; all of them if none was begun.
  const std::vector<ShardId>& unsent(uint32_t slot) const {
    return slots_.at(slot).unsent.empty() ? all_ : slots_[slot].unsent;
  }

  /// Returns whether all shards have answered the slot's last push.
  bool is_answered(uint32_t slot) const { return slots_.at(slot).unanswered == 0; }
  bool are_answered() const;

  /// Ends a push that must not count at the shards that have not taken it. REQUIRES: no exchange of
  /// it is under way.
  void AbortPush(uint32_t slot);

  WorkWish wish() const { return {core_.wanted(), core_.newest_generation()}; }

  // Calls to a shard.

  /// The header under which initial weights are sent.
  InitializeHeader InitializeFor(uint64_t grant) const { return {identity_, grant, shard_map_, 0}; }
  PullRequest PullFor(const WorkerCore::ShardPull& pull, uint32_t slot);

  /// Returns the header of the exchange by which the slot's push goes to the shard. The sender adds
  /// how the values travel.
  PushHeader BeginExchange(ShardId shard, uint32_t slot);

  /// Returns the header of an exchange that tells the shard that no gradient comes of the slot's
  /// weights. `pull`: whether the answer is to bring others.
  PushHeader BeginExcuse(ShardId shard, uint32_t slot, bool pull);

  /// Notes that a pull has brought weights for the slot.
  absl::Status OnPulled(ShardId shard, uint32_t slot, const WeightsHeader& header);

  /// Notes an answer in the shard's exchange, whose weights are on their way. A further one comes
  /// if they broke off. Returns whether it revokes the weights of the answer before: it brings
  /// others, or none, as the shard has begun a new generation. A step that computes from them has
  /// to end, also if none has arrived, and the core names its batches anew. Fails, and the worker
  /// must then fail, too, as WorkerCore says.
  absl::StatusOr<bool> OnAnswer(ShardId shard, const ExchangeAnswer& answer);

  /// Notes that the shard's exchange is over: with all of its weights, or because it was given up.
  void OnExchangeOver(ShardId shard, bool is_complete);

  // These return what has happened since the last call of the same function.

  /// Returns the shards of which weights have arrived.
  std::set<ShardId> TakeLanded() { return std::exchange(landed_, {}); }

  /// For a worker that keeps its weights: returns the shards at which a push had no effect, because
  /// they dropped it, or refused it as too old.
  std::set<ShardId> TakeWithoutEffect() { return std::exchange(without_effect_, {}); }

  /// The first answer of each shard to its newest push; the defaults before that.
  const std::vector<PushReply>& replies() const { return replies_; }

 private:
  /// A slot's push, until the next.
  struct Slot {
    Gradient gradient;
    std::vector<ShardId> unsent;  // Empty once it has gone to all.
    size_t unanswered = 0;
  };

  /// The shard's exchange under way, or its last.
  struct Exchange {
    uint32_t slot = 0;
    bool is_excuse = false;
    bool is_under_way = false;
    bool is_answered = false;

    /// The generation and version of the weights that the last answer brings.
    std::optional<std::pair<Generation, Version>> brought;
  };

  PushHeader HeaderFor(ShardId shard, uint32_t slot, std::optional<bool> pull);

  // Constant after construction.
  const Identity identity_;
  const uint64_t shard_map_;
  const PushKind pushes_;
  const bool keeps_weights_;
  std::vector<ShardId> all_;

  WorkerCore core_;
  std::vector<Slot> slots_;
  std::vector<Exchange> exchanges_;  // By shard.
  std::vector<PushReply> replies_;   // By shard.
  std::set<ShardId> landed_;
  std::set<ShardId> without_effect_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_WORKER_SESSION_H_
