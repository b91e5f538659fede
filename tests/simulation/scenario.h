#ifndef SLIPSTREAM_TESTS_SIMULATION_SCENARIO_H_
#define SLIPSTREAM_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// What befalls one worker process.
struct WorkerFault {
  enum class Kind {
    kCrash,    // The process is gone.
    kFreeze,   // It stands still for `lasting`, and then goes on as if nothing had been.
    kReplace,  // Another process registers under its id while it still runs.
  };
  Kind kind = Kind::kCrash;
  uint32_t worker = 0;
  absl::Duration at;

  /// Of a freeze, how long; else when another process comes back under the same id.
  absl::Duration lasting;

  /// Of a crash, and of a freeze that costs the membership: whether another process comes.
  bool returns = true;
};

struct Faults {
  /// Of calls and answers, each.
  uint32_t loss_per_mille = 0;

  /// Of requests: delivered twice, the second up to `late_max` later.
  uint32_t duplicate_per_mille = 0;
  absl::Duration late_max;

  /// A lost call fails at its caller after at most so long …
  absl::Duration failure_max = absl::Seconds(1);

  /// … and at the shard, which learns that its caller is gone, after at most so long.
  absl::Duration cancel_max = absl::Seconds(1);
  std::vector<WorkerFault> workers;

  /// When phase two begins: from here on nothing fails any more.
  absl::Duration end;
};

/// One simulated run: the settings that a run.yaml could have, how the world behaves, and its
/// faults. A pure function of its seed.
struct Scenario {
  uint64_t seed = 0;
  RunSpec run;
  uint32_t shards = 1;
  uint32_t examples_per_epoch = 0;

  /// Of one mini-batch, by worker id; a worker beyond it takes the last.
  std::vector<absl::Duration> compute_time;
  absl::Duration delay_max;

  /// Of one update: how long its version is decided but not published.
  absl::Duration update_time_max;

  /// Workers that join when training is under way.
  std::vector<absl::Duration> joins;
  Faults faults;

  uint32_t batches_per_epoch() const {
    return (examples_per_epoch + run.training.batch_size - 1) / run.training.batch_size;
  }
  uint32_t batches_total() const;
  uint32_t ExamplesOf(uint64_t batch) const;
  const StalenessGuardSpec& guard() const { return run.consistency.max_staleness; }
  bool blocks() const { return guard().action == StalenessGuardSpec::Action::kBlock; }
  /// Whether something may end the run that cannot be known beforehand.
  bool may_end_early() const {
    return run.training.max_seconds > 0 || run.training.target_accuracy > 0;
  }

  /// Rounds take one gradient of each member, and name the work.
  bool has_rounds() const { return run.consistency.traits().work == PolicyTraits::Work::kRounds; }

  /// Rounds may close without so many of the members at work.
  uint32_t spare() const {
    const bool has_backups = run.consistency.policy == PolicyKind::kBackup;
    return has_backups ? static_cast<uint32_t>(run.consistency.parameters["backups"]) : 0;
  }
};

/// `seed` decides everything.
Scenario DrawScenario(uint64_t seed);

/// The same run in a world without faults.
Scenario WithoutFaults(Scenario scenario);

/// For people, in one line.
std::string Describe(const Scenario& scenario);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SCENARIO_H_
