#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_MESSAGES_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_MESSAGES_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/settings/run_spec.h"
#include "proto/coordinator.pb.h"
#include "server/core/coordinator/coordinator.h"

namespace slipstream {

// These functions let the messages of the control plane act on the coordinator, and make its
// answers. Whoever carries the messages adds who the caller may be, and figures that are only
// shown. The functions are pure: all time comes as `now`.

/// Notes what a member says. Fails with the refusal.
absl::Status Take(Coordinator& coordinator, const v1::PrepareModelRequest& request, absl::Time now);
absl::Status Take(Coordinator& coordinator, const v1::FinishInitializationRequest& request,
                  absl::Time now);
absl::Status Take(Coordinator& coordinator, const v1::HeartbeatRequest& request, absl::Time now);
absl::Status Take(Coordinator& coordinator, const v1::GetWorkRequest& request, absl::Time now);
absl::Status Take(Coordinator& coordinator, const v1::MeetRequest& request, absl::Time now);
absl::Status Take(Coordinator& coordinator, const v1::ReportRequest& request, absl::Time now);
absl::Status Take(Coordinator& coordinator, const v1::LeaveRequest& request, absl::Time now);

/// Fills the answer to a request that was taken, and returns the call's status; nothing if the call
/// has to wait. `is_last`: no time is left to wait.
std::optional<absl::Status> AnswerTo(const Coordinator& coordinator,
                                     const v1::SyncServerRequest& request, bool is_last,
                                     v1::SyncServerReply& reply);
std::optional<absl::Status> AnswerTo(const Coordinator& coordinator,
                                     const v1::PrepareModelRequest& request, bool is_last,
                                     v1::PrepareModelReply& reply);
std::optional<absl::Status> AnswerTo(Coordinator& coordinator, const v1::GetWorkRequest& request,
                                     bool is_last, v1::GetWorkReply& reply);
std::optional<absl::Status> AnswerTo(const Coordinator& coordinator, const v1::MeetRequest& request,
                                     bool is_last, v1::MeetReply& reply);

/// Fills the answer to a worker that has registered, but for the run's settings.
void Welcome(const Coordinator& coordinator, const Identity& worker, absl::Duration lease,
             v1::RegisterReply& reply);

/// Fills the answer to a reader whose report was taken, but for its number and the run's.
void Inform(const Coordinator& coordinator, const RunSpec& run, const v1::FollowRequest& request,
            v1::FollowReply& reply);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_MESSAGES_H_
