#ifndef SLIPSTREAM_SERVER_AGGREGATOR_GROUP_PULLS_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_GROUP_PULLS_H_

#include <cstddef>
#include <map>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "server/data_plane/shard.h"

namespace slipstream {

/// Decides how the pulls are answered by which the workers of a group follow their shard's versions
/// (`worker.lanes: free`), so that the shard sends each version at most once to a group.
///
/// The newest weights that came from the shard are kept. A pull that they satisfy is answered at
/// once; any other waits. While pulls wait, Next says what to fetch from the shard, and OnFetched
/// follows.
///
/// First weights (a pull for any version) are as new as the shard's. While nobody waits, the kept
/// ones may be of long ago, so they are fetched. While others wait for a newer version, the kept
/// ones are the newest but one at worst; if none are kept, the worker is sent to the shard, because
/// the fetch under way may wait for this very worker's gradient.
///
/// A shard that will have nothing newer, or not before the run's next policy, answers with an older
/// version than was asked for. All pulls that wait then get the newest weights there are.
///
/// Not thread-safe: one owner.
class GroupPulls {
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

  /// Returns the answer, or nothing if `call` gets it later: the weights, or UNAVAILABLE if a fetch
  /// fails meanwhile. A fetch that was refused for good, for example because its worker is fenced,
  /// fails only for pulls of the same identity. RESOURCE_EXHAUSTED if the worker has too many pulls
  /// open.
  std::optional<Answer> Pull(const Asked& asked, CallId call);

  /// Returns true if the call was waiting. Then it waits no more and gets no answer.
  bool Cancel(CallId call);

  /// Notes that an answered pull has sent its answer, or that its call is gone.
  void Finish(CallId call) { open_.erase(call); }

  /// Returns the pull that waits for the oldest version, in whose name to fetch; nothing if none
  /// waits.
  std::optional<Asked> Next() const;

  /// Takes what was fetched in the name of `asked`. Returns the answers to be given now.
  Answers OnFetched(const Asked& asked, absl::StatusOr<Fetched> fetched);

 private:
  /// An open pull.
  struct Open {
    Asked asked;
    bool waits = false;  // Not answered yet.
  };

  Answers OnFailure(const Asked& asked, const absl::Status& failure);
  Answer NewestTo(CallId call) const {
    return {.call = call, .header = newest_->header, .weights = newest_->weights};
  }

  std::optional<Fetched> newest_;  // Absent before the first fetch.
  std::map<CallId, Open> open_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_GROUP_PULLS_H_
