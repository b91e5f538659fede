#ifndef SLIPSTREAM_SERVER_STATUS_RUN_STAGE_WIRE_H_
#define SLIPSTREAM_SERVER_STATUS_RUN_STAGE_WIRE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "proto/status.pb.h"
#include "server/core/run_stages.h"

namespace slipstream {

/// Convert the stages of a run to and from messages, but for the staleness guard, which is the same
/// for all stages and stands in the settings.
v1::RunStage ToWire(const RunStage& stage);

/// INVALID_ARGUMENT if there are more than kRunStagesMax, or if a policy or a parameter is unknown.
absl::StatusOr<std::vector<RunStage>> FromWire(
    const google::protobuf::RepeatedPtrField<v1::RunStage>& wire);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_RUN_STAGE_WIRE_H_
