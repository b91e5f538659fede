#ifndef SLIPSTREAM_WORKER_CLIENT_WORK_PROGRESS_H_
#define SLIPSTREAM_WORKER_CLIENT_WORK_PROGRESS_H_

#include <vector>

#include "proto/coordinator.pb.h"
#include "worker/core/unit_queue.h"

namespace slipstream {

/// How much is done of which unit, as requests to the coordinator tell it.
google::protobuf::RepeatedPtrField<v1::WorkProgress> ToWire(
    const std::vector<UnitProgress>& progress);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_WORK_PROGRESS_H_
