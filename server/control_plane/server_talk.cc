#include "server/control_plane/server_talk.h"

#include <algorithm>
#include <utility>

#include "common/process/version.h"
#include "server/control_plane/orders_wire.h"

namespace slipstream {

v1::SyncServerRequest ServerTalk::Ask() {
  sink_.OnCoordinatorAsked();
  v1::SyncServerRequest request;
  request.set_shard(Value(options_.shard));
  request.set_address(options_.address);
  request.set_settings(options_.settings);
  request.set_protocol(kProtocol);
  request.set_instance(options_.instance);
  request.set_call(++calls_);
  request.set_orders_seen(orders_.number);
  request.set_run(orders_.run);
  request.set_accepts_rollback(options_.accepts_rollback);
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(wait())));
  sink_.Describe(request);
  if (request.has_status()) {
    request.mutable_status()->set_http_address(options_.http_address);
    request.mutable_status()->set_memory_limit_bytes(options_.memory_limit);
  }
  return request;
}

absl::Duration ServerTalk::wait() const {
  if (orders_.may_exit) return absl::ZeroDuration();
  const bool is_waited_for = orders_.phase == Phase::kInitializing ||
                             orders_.phase == Phase::kDraining || sink_.AwaitsCoordinator();
  return is_waited_for ? options_.wait_eager : options_.wait;
}

absl::Status ServerTalk::OnReply(const v1::SyncServerReply& reply) {
  pause_ = options_.pause_min;
  // Until then its orders may be old, such as to return to a generation that has ended.
  if (reply.awaits_servers()) return absl::OkStatus();
  if (orders_.number != 0 && reply.run() != orders_.run) {
    return absl::FailedPreconditionError("the coordinator was restarted and began another run");
  }
  if (!reply.upstream().empty()) sink_.OnUpstream(reply.upstream());
  if (reply.orders() > orders_.number) {
    absl::StatusOr<ServerOrders> orders = FromWire(reply);
    if (!orders.ok()) return orders.status();
    orders_ = *std::move(orders);
    sink_.OnOrders(orders_);
  }
  sink_.OnCoordinatorAnswered();
  return absl::OkStatus();
}

absl::Duration ServerTalk::OnFailure() {
  return std::exchange(pause_, std::min(pause_ * 2, options_.pause_max));
}

}  // namespace slipstream
