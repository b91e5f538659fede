#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_SERVER_SYNC_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_SERVER_SYNC_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "deploy/lab/event_queue.h"
#include "server/control_plane/server_orders.h"
#include "server/control_plane/server_talk.h"
#include "server/core/orders.h"
#include "tests/simulation/network.h"

namespace slipstream {

/// The conversation of a server process with the coordinator (ServerTalk) in virtual time.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the event queue's
/// last event.
class SimServerSync {
 public:
  struct Options {
    ServerTalk::Options talk;
    absl::Duration first_pause;

    /// Runs its argument, which sends a report, once all that the server has done may leave it;
    /// never if the process ends before.
    std::function<void(std::function<void()>)> leave = [](const auto& report) { report(); };
  };

  /// Makes its first call after the first pause, and none once the process is dead.
  SimServerSync(const Options& options, const std::shared_ptr<Process>& process, EventQueue& queue,
                Network& network, OrdersSink& server);

  /// Returns true once the run is over and the coordinator has let this server go.
  bool may_exit() const { return talk_.orders().may_exit; }

 private:
  void Sync();
  void OnSynced(const absl::StatusOr<std::string>& reply);

  // Constant after construction.
  const Options options_;
  const std::shared_ptr<Process> process_;

  EventQueue& queue_;
  Network& network_;
  ServerTalk talk_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_SERVER_SYNC_H_
