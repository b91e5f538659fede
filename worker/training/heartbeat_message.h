#ifndef SLIPSTREAM_WORKER_TRAINING_HEARTBEAT_MESSAGE_H_
#define SLIPSTREAM_WORKER_TRAINING_HEARTBEAT_MESSAGE_H_

#include "proto/coordinator.pb.h"
#include "worker/training/step_figures.h"

namespace slipstream {

/// Returns the heartbeat that tells these figures, without the sender and what it measures.
/// `tells_speed`: whether the run's steps follow the speeds of workers.
v1::HeartbeatRequest HeartbeatOf(const StepFigures::Figures& figures, bool tells_speed);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_HEARTBEAT_MESSAGE_H_
