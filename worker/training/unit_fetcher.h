#ifndef SLIPSTREAM_WORKER_TRAINING_UNIT_FETCHER_H_
#define SLIPSTREAM_WORKER_TRAINING_UNIT_FETCHER_H_

#include <cstdint>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/coordinator_stream.h"
#include "worker/core/unit_queue.h"
#include "worker/training/interruption.h"
#include "worker/training/step_figures.h"

namespace slipstream {

/// Gets units of work from the coordinator on a thread of its own, so that training goes on
/// meanwhile.
///
/// Thread-safe: guarded by its own mutex. One thread asks and takes.
class UnitFetcher {
 public:
  /// A unit, or nothing where no more will come.
  using Result = absl::StatusOr<std::optional<WorkUnit>>;

  /// All arguments must outlive it.
  UnitFetcher(const CoordinatorClient& coordinator, const Identity& identity,
              const StepFigures& figures, Interruption& interruption);
  ~UnitFetcher();
  UnitFetcher(const UnitFetcher&) = delete;
  UnitFetcher& operator=(const UnitFetcher&) = delete;

  /// Asks for one unit, unless one is asked for or there already.
  void Ask();

  /// What came, once; nothing yet, or nothing was asked for.
  std::optional<Result> Take();

  /// Waits for what was asked for. REQUIRES: Ask was called since the last result.
  Result Await();

 private:
  void Run();
  bool IsClosing();
  Result Fetch();

  // Constant after construction.
  const Identity identity_;
  const StepFigures& figures_;
  Interruption& interruption_;

  Mutex mutex_;
  CondVar changed_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_asked_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);

  // Owned by the thread:
  WorkStream stream_;
  uint64_t newest_unit_ = 0;  // Told with each question: a unit whose answer was lost comes again.

  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_UNIT_FETCHER_H_
