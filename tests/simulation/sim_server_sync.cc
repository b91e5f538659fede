#include "tests/simulation/sim_server_sync.h"

#include "common/base/check.h"
#include "proto/coordinator.pb.h"

namespace slipstream {

SimServerSync::SimServerSync(const Options& options, const std::shared_ptr<Process>& process,
                             EventQueue& queue, Network& network, OrdersSink& server)
    : options_(options),
      process_(process),
      queue_(queue),
      network_(network),
      talk_(options.talk, server) {
  queue_.After(options.first_pause, [this] { Sync(); });
}

void SimServerSync::Sync() {
  if (process_->is_dead) return;
  options_.leave([this, bytes = talk_.Ask().SerializeAsString()] {
    network_.Call(Method::kSyncServer, bytes, process_,
                  [this](const absl::StatusOr<std::string>& reply) { OnSynced(reply); });
  });
}

void SimServerSync::OnSynced(const absl::StatusOr<std::string>& reply) {
  if (talk_.orders().may_exit) return;
  if (!reply.ok()) {
    queue_.After(talk_.OnFailure(), [this] { Sync(); });
    return;
  }
  v1::SyncServerReply wire;
  PS_CHECK(wire.ParseFromString(*reply) && talk_.OnReply(wire).ok());
  Sync();
}

}  // namespace slipstream
