#ifndef SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_PULLS_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_PULLS_H_

#include <functional>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/protocol/shard_messages.h"
#include "server/aggregator/group_pulls.h"
#include "server/data_plane/waiting_call.h"

namespace slipstream {

/// Answers the pulls by which the workers of a group follow their shard's versions: GroupPulls with
/// a lock, and a thread that fetches the shard's newest version again and again while pulls wait.
///
/// Thread-safe: guarded by its own mutex, which is not held during a fetch. Must outlive the calls
/// that it answers.
class AggregatorPulls {
 public:
  /// Gets the shard's newest weights in the name of a pull that waits: of its version at least,
  /// unless none such will come. Waits until the shard has them.
  using Fetch = std::function<absl::StatusOr<GroupPulls::Fetched>(const GroupPulls::Asked& pull)>;

  /// `fetch` is called on the one thread of this object, which starts with the first pull that
  /// waits.
  explicit AggregatorPulls(Fetch fetch) : fetch_(std::move(fetch)) {}

  /// Waits for the fetch under way, which the owner has to end.
  ~AggregatorPulls();
  AggregatorPulls(const AggregatorPulls&) = delete;
  AggregatorPulls& operator=(const AggregatorPulls&) = delete;

  // The same as in GroupPulls.
  std::optional<Answer> Pull(const GroupPulls::Asked& asked, WaitingCall* call);
  bool Cancel(WaitingCall* call);
  void Finish(WaitingCall* call);

 private:
  void Run();

  // Constant after construction.
  const Fetch fetch_;

  Mutex mutex_;
  CondVar work_came_;
  GroupPulls pulls_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_AGGREGATOR_PULLS_H_
