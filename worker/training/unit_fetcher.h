#ifndef SLIPSTREAM_WORKER_TRAINING_UNIT_FETCHER_H_
#define SLIPSTREAM_WORKER_TRAINING_UNIT_FETCHER_H_

#include <cstdint>
#include <optional>
#include <thread>
#include <variant>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"
#include "common/run/policy_rows.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/coordinator_stream.h"
#include "worker/core/unit_queue.h"
#include "worker/training/interruption.h"
#include "worker/training/step_figures.h"

namespace slipstream {

/// Fetches units of work from the coordinator on its own thread, so that training goes on in the
/// meantime.
///
/// Thread-safe: guarded by its own mutex. One thread calls Ask, Take and Await.
class UnitFetcher {
 public:
  /// The run has reached this stage, and units of work are of it.
  struct NextStage {
    uint32_t number = 0;

    /// As in WorkerCore::Stage.
    uint32_t since = 0;
    PolicyKind policy = PolicyKind::kSoftsync;
  };

  /// The shards, which are in step, have begun this life: rounds that were done come again.
  struct Returned {
    Life life{};
  };

  /// No more units will come.
  struct NoMoreUnits {};
  using Result = absl::StatusOr<std::variant<WorkUnit, NextStage, Returned, NoMoreUnits>>;

  /// All arguments must outlive the fetcher.
  UnitFetcher(const CoordinatorClient& coordinator, const Identity& identity,
              const StepFigures& figures, Interruption& interruption);
  ~UnitFetcher();
  UnitFetcher(const UnitFetcher&) = delete;
  UnitFetcher& operator=(const UnitFetcher&) = delete;

  /// Asks for one unit, or for the next stage of the run, unless one was asked for already or is
  /// waiting to be taken. `life` is the newest life of a shard that the worker knows.
  void Ask(Life life);

  /// Returns a result that has arrived, once; nothing if none has arrived or none was asked for.
  std::optional<Result> Take();

  /// Waits for the result and returns it. REQUIRES: Ask was called since the last result.
  Result Await();

 private:
  void Run();
  bool IsClosing();
  Result Fetch(Life life);

  /// Takes the answer that the run is in a later stage.
  Result TakeStage(const v1::GetWorkReply& reply);

  // Constant after construction.
  const Identity identity_;
  const StepFigures& figures_;
  Interruption& interruption_;

  Mutex mutex_;
  CondVar changed_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_asked_ ABSL_GUARDED_BY(mutex_) = false;
  Life life_ ABSL_GUARDED_BY(mutex_){};
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);

  // Owned by the thread:
  WorkStream stream_;
  // Sent with each request, so that a unit whose answer was lost is sent again.
  uint64_t newest_unit_ = 0;
  uint32_t stage_ = 0;  // The stage that results were given for.

  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_UNIT_FETCHER_H_
