#include "tests/simulation/sim_server_sync.h"

#include <algorithm>
#include <cstdint>

#include "common/base/check.h"
#include "proto/coordinator.pb.h"
#include "server/service/orders_wire.h"

namespace slipstream {
namespace {

// These values are the same as in ServerSync.
constexpr absl::Duration kWait = absl::Milliseconds(250);
constexpr absl::Duration kWaitEager = absl::Milliseconds(20);
constexpr absl::Duration kPauseMin = absl::Milliseconds(100);
constexpr absl::Duration kPauseMax = absl::Seconds(2);

}  // namespace

SimServerSync::SimServerSync(const Options& options, const std::shared_ptr<Process>& process,
                             EventQueue& queue, Network& network, OrdersSink& server)
    : options_(options),
      process_(process),
      queue_(queue),
      network_(network),
      server_(server),
      pause_(kPauseMin) {
  queue_.After(options.first_pause, [this] { Sync(); });
}

void SimServerSync::Sync() {
  if (process_->is_dead) return;
  server_.OnCoordinatorAsked();
  v1::SyncServerRequest request;
  request.set_shard(Value(options_.shard));
  request.set_address(options_.address);
  request.set_instance(options_.instance);
  request.set_call(++calls_);
  request.set_orders_seen(orders_.number);
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(NextWait())));
  server_.Describe(request);
  options_.leave([this, bytes = request.SerializeAsString()] {
    network_.Call(Method::kSyncServer, bytes, process_,
                  [this](const absl::StatusOr<std::string>& reply) { OnSynced(reply); });
  });
}

absl::Duration SimServerSync::NextWait() const {
  if (orders_.may_exit) return absl::ZeroDuration();
  const bool is_waited_for =
      orders_.phase == Phase::kInitializing || orders_.phase == Phase::kDraining;
  return is_waited_for ? kWaitEager : kWait;
}

void SimServerSync::OnSynced(const absl::StatusOr<std::string>& reply) {
  if (orders_.may_exit) return;
  if (!reply.ok()) {
    queue_.After(pause_, [this] { Sync(); });
    pause_ = std::min(pause_ * 2, kPauseMax);
    return;
  }
  pause_ = kPauseMin;
  v1::SyncServerReply wire;
  PS_CHECK(wire.ParseFromString(*reply));
  if (wire.awaits_servers()) return Sync();
  if (!wire.upstream().empty()) server_.OnUpstream(wire.upstream());
  if (wire.orders() > orders_.number) {
    const absl::StatusOr<ServerOrders> orders = FromWire(wire);
    PS_CHECK(orders.ok());
    orders_ = *orders;
    server_.OnOrders(*orders);
  }
  server_.OnCoordinatorAnswered();
  Sync();
}

}  // namespace slipstream
