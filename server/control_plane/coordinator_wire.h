#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_WIRE_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_WIRE_H_

#include <vector>

#include "proto/coordinator.pb.h"
#include "proto/status.pb.h"
#include "server/core/coordinator/coordinator.h"

namespace slipstream {

/// Convert the reports of servers and workers to the coordinator, and its answers, from and to the
/// messages of the control plane. Every value is possible; the coordinator judges them.
ReaderReport FromWire(const v1::FollowRequest& wire);
ServerReport FromWire(const v1::SyncServerRequest& wire);
Initialization::Data DataOf(const v1::PrepareModelRequest& wire);
Saving SavingOf(const v1::PrepareModelRequest& wire);

/// REQUIRES: an aggregator has sent the request.
AggregatorReport AggregatorReportOf(const v1::SyncServerRequest& wire);

std::vector<UnitReport> FromWire(const google::protobuf::RepeatedPtrField<v1::WorkProgress>& wire);
Evaluation FromWire(const v1::EvaluationStatus& wire);

v1::PrepareModelReply ToWire(const Preparation& preparation);
v1::GetWorkReply ToWire(const WorkAnswer& work);

/// Returns the news about the run that answers a heartbeat of `worker`.
v1::HeartbeatReply NewsFor(const Coordinator& coordinator, WorkerId worker);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_COORDINATOR_WIRE_H_
