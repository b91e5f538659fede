#ifndef SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_PULLS_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_PULLS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"
#include "server/data_plane/waiting_call.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

/// Answers the pulls by which the workers of a group follow their shard's versions
/// (`worker.lanes: free`), so that the shard sends each version at most once to a group.
///
/// The newest weights that came from the shard are kept. A pull that they satisfy is answered at
/// once; any other waits, and while pulls wait, a thread fetches the shard's newest version again
/// and again.
///
/// A shard that will have nothing newer, or not before the run's next policy, answers with an older
/// version than was asked for. All pulls that wait then get the newest weights there are.
///
/// Thread-safe: guarded by its own mutex, which is not held during a fetch. Must outlive the calls
/// that it answers.
class AggregatorPulls {
 public:
  /// How many pulls of one worker may be open. It needs one, but a broken connection may be noticed
  /// later than it is replaced.
  static constexpr size_t kPullsOfWorkerMax = 16;

  /// A pull of a worker: its sender, and the version that the answer has to have at least, unless
  /// it is of a later generation.
  struct Asked {
    Identity identity;
    Version min_version{};
    Generation min_generation{};
  };

  /// Complete weights of the shard.
  struct Fetched {
    WeightsHeader header;
    Weights weights;
  };

  /// Gets the shard's newest weights in the name of a pull that waits: of its version at least,
  /// unless none such will come. Waits until the shard has them.
  using Fetch = std::function<absl::StatusOr<Fetched>(const Asked& pull)>;

  /// `fetch` is called on the one thread of this object, which starts with the first pull that
  /// waits.
  explicit AggregatorPulls(Fetch fetch) : fetch_(std::move(fetch)) {}

  /// Waits for the fetch under way, which the owner has to end.
  ~AggregatorPulls();
  AggregatorPulls(const AggregatorPulls&) = delete;
  AggregatorPulls& operator=(const AggregatorPulls&) = delete;

  /// Returns the answer, or nothing if `call` gets it later: the weights, or UNAVAILABLE if a fetch
  /// fails meanwhile. A fetch that was refused for good, for example because its worker is fenced,
  /// fails only for pulls of the same identity. RESOURCE_EXHAUSTED if the worker has too many pulls
  /// open.
  std::optional<Answer> Pull(const Asked& asked, WaitingCall* call);

  /// Returns true if the call was waiting. Then it waits no more and gets no answer.
  bool Cancel(WaitingCall* call);

  /// Notes that an answered pull has sent its answer, or that its call is gone.
  void Finish(WaitingCall* call);

 private:
  /// An open pull.
  struct Open {
    Asked asked;
    bool waits = false;  // Not answered yet.
  };

  void Run();

  /// Returns the pull that waits for the oldest version; nothing if none waits.
  std::optional<Asked> Next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answers OnFetched(const Asked& asked, absl::StatusOr<Fetched> fetched)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answers OnFailure(const Asked& asked, const absl::Status& failure)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer NewestTo(WaitingCall* call) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after construction.
  const Fetch fetch_;

  Mutex mutex_;
  CondVar work_came_;
  std::optional<Fetched> newest_ ABSL_GUARDED_BY(mutex_);  // Absent before the first fetch.
  std::map<WaitingCall*, Open> open_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_PULLS_H_
