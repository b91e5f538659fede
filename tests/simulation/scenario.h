#ifndef SLIPSTREAM_TESTS_SIMULATION_SCENARIO_H_
#define SLIPSTREAM_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// A fault of one worker process.
struct WorkerFault {
  enum class Kind {
    kCrash,    // The process ends.
    kFreeze,   // It stands still for `lasting`, and then goes on as if nothing had happened.
    kReplace,  // Another process registers under its id while it still runs.
  };
  Kind kind = Kind::kCrash;
  uint32_t worker = 0;
  absl::Duration at;

  /// The length of a freeze. For other faults: the time until another process comes under the same
  /// id.
  absl::Duration lasting;

  /// Whether another process comes, after a crash or after a freeze that costs the membership.
  bool returns = true;
};

/// The end of an aggregator's process.
struct AggregatorFault {
  uint32_t group = 0;
  uint32_t shard = 0;
  absl::Duration at;

  /// Whether another process comes in its place, and how long after.
  bool returns = true;
  absl::Duration lasting;
};

/// The end of a server's process, that of shard 0 with the coordinator in it. Another process comes
/// in its place. While no checkpoint is complete, the end of a server would be that of the run, so
/// the fault comes later then. Where shards keep logs, the fault may also be one of the disk.
struct ServerFault {
  enum class Kind {
    kKill,      // The process ends.
    kPowerCut,  // Its machine stops, and forgets what was not synced.
    kDiskCall,  // One of the next calls of its disk fails. If that is the log's, the process ends.
    kDiskFull,  // Its disk is full for `lasting`.
  };
  enum class Moment {
    kAny,  // At `at`.

    // The next moment after `at` at which the process does this, if one comes:
    kWriting,     // It writes to its disk.
    kLogging,     // It writes a batch of its log.
    kSaving,      // It makes a checkpoint.
    kNewSegment,  // It has begun a segment of its log of which nothing is on the disk.
    kRedoing,     // It redoes the log of an earlier process.
  };
  Kind kind = Kind::kKill;
  uint32_t shard = 0;

  /// Whether the fault comes over all servers at once.
  bool hits_all = false;
  absl::Duration at;
  Moment moment = Moment::kAny;

  /// How long after it another process comes.
  absl::Duration lasting;

  /// kDiskCall: how many calls of the disk come before the one that fails. If the process ends: how
  /// many it still makes of those that it was about to make.
  uint32_t calls = 0;

  /// Draws what a power cut leaves of what was not synced.
  uint32_t seed = 0;

  /// Whether the newest checkpoint is damaged, if there is an older one.
  bool damages = false;

  /// How many of the processes that come after are killed while they redo the log.
  uint32_t redos = 0;
};

struct Faults {
  /// The probability that a call is lost, and, separately, that an answer is.
  uint32_t loss_per_mille = 0;

  /// The probability that a request is delivered twice, the second time up to `late_max` later.
  uint32_t duplicate_per_mille = 0;
  absl::Duration late_max;

  /// The longest time until a lost call fails at its caller.
  absl::Duration failure_max = absl::Seconds(1);

  /// The longest time until the shard learns that the caller of a lost call is gone.
  absl::Duration cancel_max = absl::Seconds(1);
  std::vector<WorkerFault> workers;
  std::vector<AggregatorFault> aggregators;

  /// Only with checkpoints.
  std::vector<ServerFault> servers;

  /// When phase two begins, in which nothing fails any more.
  absl::Duration end;
};

/// A reader that workers wait for.
struct ReaderPlan {
  absl::Duration comes;
  uint64_t lag_max = 1;

  /// The longest time that it spends on a version.
  absl::Duration pause_max;

  /// How long after it came the process is killed, if it is.
  std::optional<absl::Duration> dies;
};

/// A policy that is set this long after training began.
struct PolicyChange {
  absl::Duration at;
  ConsistencySpec policy;
};

/// One simulated run: settings that a run.yaml could have, the behaviour of the world, and its
/// faults. It is a pure function of its seed.
struct Scenario {
  uint64_t seed = 0;
  RunSpec run;
  uint32_t shards = 1;
  uint32_t examples_per_epoch = 0;

  /// The time to compute one mini-batch, by worker id. Workers beyond the end use the last value.
  std::vector<absl::Duration> compute_time;
  absl::Duration delay_max;

  /// The longest time of one update, during which its version is decided but not published.
  absl::Duration update_time_max;

  /// With durability: the longest time until a checkpoint is on the disk, until the coordinator's
  /// state is, until a batch of a log is, and until a log is redone.
  absl::Duration save_time_max;
  absl::Duration journal_time_max;
  absl::Duration log_time_max;
  absl::Duration redo_time_max;

  /// Whether the first steps of a push may give no finite values, so that fragments leave later.
  bool has_nonfinite_steps = false;

  /// When workers join during training.
  std::vector<absl::Duration> joins;

  /// An operator's changes while the run trains, in order of time. Only where no work comes in
  /// rounds, and no stage in the settings; so each change that comes before the end of work makes
  /// the next stage.
  std::vector<PolicyChange> changes;

  /// Only with readers.on_lag: wait.
  std::vector<ReaderPlan> readers;
  Faults faults;

  uint32_t batches_per_epoch() const {
    return (examples_per_epoch + run.training.batch_size - 1) / run.training.batch_size;
  }
  uint32_t batches_total() const;
  uint32_t ExamplesOf(uint64_t batch) const;

  /// Returns how long the worker usually takes for a mini-batch.
  absl::Duration ComputeTimeOf(WorkerId worker) const;
  const StalenessGuardSpec& guard() const { return run.consistency.max_staleness; }
  bool blocks() const { return guard().action == StalenessGuardSpec::Action::kBlock; }

  /// Returns whether the run may wait for other workers in the places of lost ones.
  bool waits_for_lost() const {
    return run.cluster.on_worker_loss == ClusterSpec::OnWorkerLoss::kWait;
  }

  /// Returns whether the run may end at a point that cannot be known beforehand.
  bool may_end_early() const {
    return run.training.max_seconds > 0 || run.training.target_accuracy > 0;
  }

  /// Returns whether each gradient shows in the weights by its counting position alone
  /// (gradients.h): servers follow plain sgd, and what a push loses to its encoding is in other
  /// positions.
  bool shows_gradients() const;

  /// The policy of one stage of the run.
  ConsistencySpec PolicyOf(uint32_t stage) const {
    return stage == 0 || changes.empty() ? run.StageOf(stage).consistency
                                         : changes.at(stage - 1).policy;
  }
  uint32_t StageOfBatch(uint64_t batch) const;

  /// Returns whether aggregators may combine the pushes of workers, and weigh them alike in all
  /// stages.
  bool may_combine() const;

  /// Returns whether rounds of the stage take one gradient from each member, and name the work.
  bool HasRounds(uint32_t stage) const {
    return PolicyOf(stage).traits().work == PolicyTraits::Work::kRounds;
  }
  uint32_t stages_in_rounds() const;  // They come first.

  /// Returns the number of members at work without which a round of the stage may close.
  uint32_t SpareOf(uint32_t stage) const {
    const ConsistencySpec policy = PolicyOf(stage);
    const bool has_backups = policy.policy == PolicyKind::kBackup;
    return has_backups ? static_cast<uint32_t>(policy.parameters["backups"]) : 0;
  }
};

/// Draws a scenario. `seed` determines everything.
Scenario DrawScenario(uint64_t seed);

/// Returns the same run in a world without faults.
Scenario WithoutFaults(Scenario scenario);

/// Describes the scenario in one line, for people.
std::string Describe(const Scenario& scenario);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SCENARIO_H_
