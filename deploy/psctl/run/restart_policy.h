#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_RESTART_POLICY_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_RESTART_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/psctl/command_line.h"
#include "deploy/psctl/run/process_end.h"
#include "proto/status.pb.h"

namespace slipstream {

/// The roles whose processes are started again.
struct RestartScope {
  bool servers = false;
  bool aggregators = false;
  bool workers = false;

  bool Has(Role role) const {
    if (role == Role::kWorker) return workers;
    return role == Role::kServer ? servers : aggregators;
  }
};

/// Returns the scope of a choice; `saves` is set if servers keep checkpoints. INVALID_ARGUMENT if
/// the choice names servers that keep none.
absl::StatusOr<RestartScope> ScopeOf(RestartChoice choice, bool saves);

/// A process that has ended before its run was over.
struct RestartFacts {
  ProcessEnd end;
  absl::Duration ran;

  /// How far it had come, as Reached returns it.
  uint64_t reached = 0;

  /// How often it was started again before.
  uint32_t starts = 0;

  /// Its end before this one, and how far it had come then.
  struct Before {
    ProcessEnd end;
    uint64_t reached = 0;
  };
  std::optional<Before> before;
};

struct RestartDecision {
  bool starts = false;

  /// How long to wait, and the number of this start among those in a row. Set if it starts.
  absl::Duration pause;
  uint32_t number = 0;

  /// Why it does not start, for people; empty where nobody would expect it to.
  std::string why_not;
};

/// Decides whether a process that has ended is started again, and after what pause.
///
/// A process is left alone if it reports an error that it would only report again (configuration,
/// files, usage), if it fails twice in a row in the same way without having come further, or if it
/// was started again too often. A process that was killed or cut off from its peers is not to
/// blame for it, so only the last of these holds for it.
///
/// Thread-safe: const after construction.
class RestartPolicy {
 public:
  struct Options {
    RestartScope scope;

    /// Whether servers end with 0 when the run is over (run.after: exit), as workers do.
    bool servers_end_with_run = false;

    /// How often in a row a process is started again. In [1, 1000].
    uint32_t starts_max = 5;

    /// The first pause. Each further one is four times as long, up to pause_max.
    absl::Duration pause = absl::Milliseconds(250);
    absl::Duration pause_max = absl::Seconds(30);

    /// A process that has run for so long has settled: its starts are counted anew.
    absl::Duration settled_after = absl::Minutes(5);
  };

  explicit RestartPolicy(const Options& options) : options_(options) {}

  RestartDecision Decide(const RestartFacts& facts) const;

  uint32_t starts_max() const { return options_.starts_max; }

 private:
  const Options options_;
};

/// Returns how far a process has come: the pushes of a worker, the version of a server's shard.
/// Neither goes back, but for shards that return to a checkpoint.
uint64_t Reached(const ProcessName& name, const v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_RESTART_POLICY_H_
