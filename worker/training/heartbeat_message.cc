#include "worker/training/heartbeat_message.h"

#include "absl/time/time.h"
#include "common/wire/control_wire.h"
#include "worker/member/work_progress.h"

namespace slipstream {
namespace {

double Seconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

v1::StepTimes ToWire(const StepFigures::StepLanes& of) {
  v1::StepTimes times;
  times.set_step(of.step.number);
  times.set_batch(of.step.batch);
  times.set_forward_begin(Seconds(of.step.forward_begin));
  times.set_backward_begin(Seconds(of.step.forward_end));
  times.set_backward_end(Seconds(of.step.backward_end));
  times.set_waited_seconds(absl::ToDoubleSeconds(of.step.waited));
  for (const LaneTimes& lane : of.lanes) {
    v1::LaneTimes& wire = *times.add_lanes();
    wire.set_push_begin(Seconds(lane.push_begin));
    wire.set_push_end(Seconds(lane.push_end));
    wire.set_pull_begin(Seconds(lane.answered));
    wire.set_pull_end(Seconds(lane.end));
  }
  return times;
}

}  // namespace

v1::HeartbeatRequest HeartbeatOf(const StepFigures::Figures& figures, bool tells_speed) {
  v1::HeartbeatRequest request;
  request.set_examples(figures.examples);
  request.set_examples_per_second(figures.examples_per_second);
  request.set_recent_examples(figures.recent_examples);
  request.set_train_loss(figures.train_loss);
  if (figures.train_accuracy) request.set_train_accuracy(*figures.train_accuracy);
  request.set_compute_share(figures.compute_share);
  request.set_communication_share(figures.communication_share);
  request.set_communication_hidden(figures.communication_hidden);
  request.set_overlap(figures.overlap);
  request.set_steady_overlap(figures.steady_overlap);
  for (const StepFigures::StepLanes& step : figures.recent) {
    *request.add_recent_steps() = ToWire(step);
  }
  *request.mutable_progress() = ToWire(figures.progress);
  request.set_done_pushing(figures.is_done);
  request.set_split_pushes(figures.split_pushes);
  if (tells_speed) request.set_steps_per_second(figures.steps_per_second);
  if (figures.nonfinite.total > 0) {
    v1::NonfiniteStatus& nonfinite = *request.mutable_nonfinite();
    nonfinite.set_total(figures.nonfinite.total);
    nonfinite.set_in_a_row(figures.nonfinite.in_a_row);
    nonfinite.set_batch(figures.nonfinite.batch);
    nonfinite.set_what(figures.nonfinite.what);
  }
  return request;
}

}  // namespace slipstream
