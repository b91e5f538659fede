#ifndef SLIPSTREAM_WORKER_CORE_SESSION_FLOW_H_
#define SLIPSTREAM_WORKER_CORE_SESSION_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/protocol/batch_ranges.h"
#include "worker/core/unit_queue.h"
#include "worker/core/work_news.h"
#include "worker/core/work_turns.h"
#include "worker/core/worker_core.h"
#include "worker/core/worker_session.h"

namespace slipstream {

/// Carries out what a WorkerSession decides, for a worker in virtual time, where nothing may block:
/// it gives the pipeline's slots their turns, and waits where it has to, by keeping what comes
/// next. How calls are made and how a gradient is computed is up to the class derived from it.
/// (Where calls block, ParameterClient and TrainingLoop do the same.)
///
/// Not thread-safe: one owner.
class SessionFlow {
 public:
  /// `progress` is kept up to date, and must outlive this object.
  SessionFlow(const WorkerSession::Options& options, bool has_free_lanes,
              std::vector<UnitProgress>& progress);
  virtual ~SessionFlow() = default;
  SessionFlow(const SessionFlow&) = delete;
  SessionFlow& operator=(const SessionFlow&) = delete;

  /// Goes on with the slot whose turn it is.
  void TakeTurn();

 protected:
  using Then = std::function<void(const WorkerCore::Action&)>;

  /// The calls of a slot.
  struct Calls {
    /// The batches that it computes or pushes.
    BatchRanges batches;

    // The number of calls under way: of pulls and excuses, and of pushes.
    size_t others = 0;
    size_t pushes = 0;

    bool follows = false;  // The slot has taken weights that came beside the pushes.
  };

  // Derived classes do the following.

  /// Tells the core what the coordinator's last orders were.
  virtual void HeedOrders() = 0;

  /// Pulls from these shards. Calls::others counts the calls until they are over.
  virtual void PullFrom(uint32_t slot, const std::vector<WorkerCore::ShardPull>& pulls) = 0;

  /// Tells these shards that no gradient comes. Calls::others counts the calls until they are over.
  virtual void PushNothing(uint32_t slot, const std::vector<ShardId>& shards, bool pull) = 0;

  /// Computes and pushes the batches of the slot whose turn it is; NextTurn or TakeTurn follows.
  virtual void Compute() = 0;

  /// Asks the coordinator, unless a question is open or an answer waits. OnNewsCame follows when an
  /// answer has come, and also if the coordinator has no work for now and is asked again.
  virtual void Ask(const WorkWish& wish) = 0;

  /// Returns the answer that has come, once.
  virtual std::optional<WorkNews> TakeNews() = 0;

  // With free lanes: FollowNewest lets the lanes go on and returns whether weights of each shard
  // have come; TakeNewest gives the slot the newest that have, and tells the session.
  virtual bool FollowNewest() = 0;
  virtual absl::Status TakeNewest(uint32_t slot) = 0;
  virtual void RestNewest() = 0;

  /// Ends with nothing left to do, or because the worker cannot go on.
  virtual void Finish() = 0;
  virtual void Fail(const absl::Status& status) = 0;

  // This class does the following for them.

  /// Continues at once if `is_over` is true, else once it is: whoever makes it true calls
  /// CheckWaiting.
  void Await(std::function<bool()> is_over, std::function<void()> then);
  void CheckWaiting();

  /// Ends all waiting: nothing continues any more.
  void StopFlow() { is_stopped_ = true; }
  bool is_stopped() const { return is_stopped_; }

  /// Makes the calls that are due for the slot, and continues with the next other action.
  void Advance(uint32_t slot, const Then& then);

  /// Does what the action says, for the slot whose turn it is.
  void OnTurn(const WorkerCore::Action& action);
  void NextTurn();

  /// The batches of the slot whose turn it is.
  const BatchRanges& batches() const { return calls_[turn_].batches; }

  /// Returns whether the action is to compute batches().
  bool IsWanted(const WorkerCore::Action& action) const;

  /// Asks for a unit in time, and heeds what has come; then continues.
  void Prefetch(const std::function<void()>& then);
  void OnNewsCame(const absl::Status& status);

  WorkerCore& core() { return session_.core(); }
  const WorkerCore& core() const { return session_.core(); }
  void NoteProgress() { progress_ = core().progress(); }
  bool is_awaiting_unit() const { return is_awaiting_unit_; }

  WorkerSession session_;
  std::vector<Calls> calls_;  // By slot.
  uint32_t turn_ = 0;         // The slot whose turn it is.

 private:
  struct Waiting {
    std::function<bool()> is_over;
    std::function<void()> then;
  };

  void AwaitUnit(uint32_t settled);

  /// For a worker that waits for work: heeds the answer that has come. Returns whether one had.
  bool HeedNews();
  void Heed(const WorkNews& news, const std::function<void()>& then);

  const bool has_free_lanes_;
  std::vector<UnitProgress>& progress_;
  WorkTurns turns_;
  std::optional<Waiting> waiting_;
  bool is_awaiting_unit_ = false;
  bool is_stopped_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_SESSION_FLOW_H_
