#ifndef SLIPSTREAM_WORKER_MEMBER_WORK_PROGRESS_H_
#define SLIPSTREAM_WORKER_MEMBER_WORK_PROGRESS_H_

#include <vector>

#include "proto/coordinator.pb.h"
#include "worker/core/unit_queue.h"

namespace slipstream {

/// Converts the progress of each unit to its form in requests to the coordinator.
google::protobuf::RepeatedPtrField<v1::WorkProgress> ToWire(
    const std::vector<UnitProgress>& progress);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_MEMBER_WORK_PROGRESS_H_
