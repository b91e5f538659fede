#ifndef SLIPSTREAM_WORKER_MEMBER_WORK_ASKING_H_
#define SLIPSTREAM_WORKER_MEMBER_WORK_ASKING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/consistency_spec.h"
#include "proto/coordinator.pb.h"
#include "worker/core/work_news.h"

namespace slipstream {

/// Asks the coordinator for units of work and for the next stage of the run: the requests, and what
/// the answers mean. A request names what came last, so that an answer that was lost is given
/// again.
///
/// Not thread-safe: one owner.
class WorkAsking {
 public:
  /// How long a request waits for a unit. It is short, because each request also reports progress.
  static constexpr absl::Duration kWait = absl::Milliseconds(100);

  /// `first`: the first policy of the run, with the staleness guard, which is the same for all.
  /// `slots`: the number of gradients that may be in flight.
  WorkAsking(const Identity& identity, const ConsistencySpec& first, uint32_t slots)
      : identity_(identity), slots_(slots), consistency_(first) {}

  v1::GetWorkRequest Request(const std::vector<UnitProgress>& progress, const WorkWish& wish) const;

  /// Returns what an answer to that request brings; nothing if it is to be asked again. INTERNAL if
  /// the answer makes no sense. `generation`: that of the wish.
  absl::StatusOr<std::optional<WorkNews>> OnReply(const v1::GetWorkReply& reply,
                                                  Generation generation);

 private:
  absl::StatusOr<NextStage> TakeStage(const v1::GetWorkReply& reply);

  // Constant after construction.
  const Identity identity_;
  const uint32_t slots_;

  ConsistencySpec consistency_;  // In this stage.
  uint32_t stage_ = 0;           // The stage that results were given for.
  uint64_t newest_unit_ = 0;
  bool has_waited_ = false;  // The coordinator had no unit since the last one.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_MEMBER_WORK_ASKING_H_
