#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_STATE_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/settings/run_spec.h"
#include "server/core/coordinator/aggregators.h"
#include "server/core/coordinator/evaluations.h"
#include "server/core/coordinator/events.h"
#include "server/core/coordinator/initialization.h"
#include "server/core/coordinator/membership.h"
#include "server/core/coordinator/notes.h"
#include "server/core/coordinator/readers.h"
#include "server/core/coordinator/recovery.h"
#include "server/core/coordinator/rollback_guard.h"
#include "server/core/coordinator/run_phase.h"
#include "server/core/coordinator/run_work.h"
#include "server/core/coordinator/servers.h"
#include "server/core/coordinator/speeds.h"
#include "server/core/coordinator/stages.h"
#include "server/core/coordinator/worker_supply.h"
#include "server/core/orders.h"

namespace slipstream {

/// The settings that the coordinator itself goes by; the parts of its state keep the others.
struct RunRules {
  uint64_t run = 0;
  absl::Duration lease;
  bool is_measured = false;            // Workers measure the weights, at least the final ones.
  bool exits_after = false;            // Servers end once the run is over.
  std::vector<std::string> addresses;  // The servers' addresses in the settings.
};

/// All that a coordinator remembers of its run, in parts. Those that need a sibling hold a
/// reference to it; no part changes another, but that WorkerSupply registers members and
/// makes notes.
struct RunState {
  /// The start_timeout counts from `start`.
  RunState(uint64_t run, const RunSpec& spec, absl::Time start);
  RunState(const RunState&) = delete;
  RunState& operator=(const RunState&) = delete;

  /// Returns the state as bytes, without all that members report again: readers, speeds, contacts.
  /// Times are left out, too: leases and timeouts begin anew.
  std::string Save(absl::Time now) const;

  /// Goes on from the bytes, as Coordinator::Restore.
  absl::Status Restore(std::string_view bytes, absl::Time now);

  /// Returns the notes made since the last call; those of a kind become events of that time.
  std::vector<CoordinatorNotes::Note> TakeNotes(absl::Time time_of_day);

  /// Has `gap`, which ends now, count in no lease and no timeout.
  void Forgive(absl::Duration gap, absl::Time now);

  const RunRules rules;
  CoordinatorNotes notes;
  RunEvents events;
  RunPhase phase;
  Membership membership;
  Servers servers;
  Aggregators aggregators;
  Initialization initialization;
  Evaluations evaluations;
  Readers readers;
  Recovery recovery;
  Stages stages;
  RunWork work;
  WorkerSupply supply;
  RollbackGuard rollback;
  std::optional<WorkerSpeeds> speeds;  // Set if workers take local steps by their speed.

  /// The orders to the servers. Their number rises with every change.
  ServerOrders orders;

  // See Coordinator.
  uint64_t changes = 0;
  uint64_t journal_changes = 0;

 private:
  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self);
};

/// The run of which RunState::Save wrote the state down.
struct SavedRun {
  uint64_t run = 0;
  Phase phase = Phase::kWaitingForServers;
  bool is_over = false;  // It has failed, or has finished and its servers may exit.
};

/// Returns which run the bytes are of; DATA_LOSS if they cannot be read. Restore checks the rest.
absl::StatusOr<SavedRun> PeekAtRun(std::string_view bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_RUN_STATE_H_
