#ifndef SLIPSTREAM_WORKER_TRAINING_UNIT_FETCHER_H_
#define SLIPSTREAM_WORKER_TRAINING_UNIT_FETCHER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/consistency_spec.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/coordinator_stream.h"
#include "worker/core/work_news.h"
#include "worker/member/work_asking.h"
#include "worker/training/interruption.h"
#include "worker/training/step_figures.h"

namespace slipstream {

/// Fetches units of work from the coordinator on its own thread, so that training goes on in the
/// meantime.
///
/// Thread-safe: guarded by its own mutex. One thread calls Ask, Take and Await.
class UnitFetcher {
 public:
  using Result = absl::StatusOr<WorkNews>;

  /// `first` and `slots`: as in WorkAsking. All other arguments must outlive the fetcher.
  UnitFetcher(const CoordinatorClient& coordinator, const Identity& identity,
              const ConsistencySpec& first, uint32_t slots, const StepFigures& figures,
              Interruption& interruption);
  ~UnitFetcher();
  UnitFetcher(const UnitFetcher&) = delete;
  UnitFetcher& operator=(const UnitFetcher&) = delete;

  /// Asks for one unit, or for the next stage of the run, unless one was asked for already or is
  /// waiting to be taken.
  void Ask(const WorkWish& wish);

  /// Returns a result that has arrived, once; nothing if none has arrived or none was asked for.
  std::optional<Result> Take();

  /// Waits for the result and returns it. `on_no_work` is called if the coordinator has none for
  /// now. REQUIRES: Ask was called since the last result.
  Result Await(const std::function<void()>& on_no_work = [] {});

 private:
  void Run();
  bool IsClosing();
  Result Fetch(const WorkWish& wish);

  // Constant after construction.
  const StepFigures& figures_;
  Interruption& interruption_;

  Mutex mutex_;
  CondVar changed_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_no_work_ ABSL_GUARDED_BY(mutex_) = false;  // As the last reply says.
  WorkWish wish_ ABSL_GUARDED_BY(mutex_);
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);

  // Owned by the thread:
  WorkStream stream_;
  WorkAsking asking_;

  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_UNIT_FETCHER_H_
