#include "worker/member/heartbeat_news.h"

#include "common/wire/control_wire.h"

namespace slipstream {

void HeartbeatNews::Note(const v1::HeartbeatReply& reply) {
  const absl::StatusOr<Phase> known = FromWire(reply.phase());
  if (known.ok()) phase = *known;
  failure = reply.failure();
  work_ends = work_ends || reply.work_ends();
  steps = reply.steps();
  if (reply.evaluation() == 0) return;
  order = {.number = reply.evaluation(),
           .epoch = reply.evaluation_epoch(),
           .is_final = reply.evaluation_final(),
           .saves = reply.evaluation_saves()};
}

}  // namespace slipstream
