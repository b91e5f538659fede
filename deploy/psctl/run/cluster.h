#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_CLUSTER_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/stop_signal.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/run/child_process.h"
#include "deploy/psctl/run/directory.h"
#include "deploy/psctl/run/process_end.h"
#include "deploy/psctl/run/program_locations.h"
#include "deploy/psctl/run/restart_policy.h"

namespace slipstream {

/// Returns the host:port of a server from the content of its port file ("node1:41234", or a port of
/// loopback, "41234"), or nothing while the file is empty. Servers write it in one piece.
std::optional<std::string> ParsePortFile(std::string_view contents);

/// The processes of a run on this machine: starts them, notes how they end, stops them.
///
/// Processes that end during the run are started again where the restart policy says so: by the
/// same command, servers at the port where the others know them.
///
/// Not thread-safe: main's thread owns it (child_process.h says why).
class Cluster {
 public:
  struct Options {
    ProgramPaths programs;

    /// The processes in the order in which they start.
    std::vector<ProcessName> processes;

    /// The host under which others know servers that listen at ports which the system chooses;
    /// empty if they listen where cluster.servers says.
    std::string host = "127.0.0.1";

    /// The host:port of server 0 if it is known; else its port file tells, which it or another node
    /// writes.
    std::string coordinator = {};

    /// Settings of servers, as key=value, beside those of the run's file.
    std::vector<std::string> server_settings = {};

    /// The program of the workers with its arguments, if it is not ps_worker. The first word is its
    /// path.
    std::vector<std::string> worker_command;

    /// The format of log lines that workers write before they have the run's settings.
    LogSpec::Format worker_log_format = LogSpec::Format::kText;

    /// How workers show who they are.
    SecuritySpec security;

    /// Which processes that end during the run are started again, and how often.
    RestartPolicy::Options restart;

    /// How long server 0, here or elsewhere, may take until it listens.
    absl::Duration start_timeout = absl::Minutes(2);
  };

  /// `directory` and `stop` must outlive the cluster.
  Cluster(Options options, const RunDirectory& directory, const StopSignal& stop)
      : options_(std::move(options)),
        restart_(options_.restart),
        directory_(directory),
        stop_(stop) {}

  /// Starts all processes. Those behind server 0, which comes first if it is here, wait until it
  /// listens. DEADLINE_EXCEEDED if it does not in time; ABORTED if a process has ended meanwhile,
  /// or if `stop` asks to. Processes that were started run until Stop.
  absl::Status Start();

  /// Notes which processes have ended, and starts those again whose pause is over. Never blocks.
  void Poll();

  /// Notes how far the processes have come. Once the run is over, none is started again.
  void Note(const v1::RunStatus& status);

  /// Waits until a process that ran at the last Poll ends, somebody asks to stop for the first
  /// time, or `timeout` (an hour at most) is over.
  void WaitForChange(absl::Duration timeout) const;

  /// Asks the workers to stop, and kills those that still run after `patience`. No process is
  /// started again from now on, and the ends of those that were about to be do not count.
  void StopWorkers(absl::Duration patience);

  /// Asks all running processes to stop, and kills those that still run after `patience`. No
  /// process runs when it returns.
  void Stop(absl::Duration patience);

  /// Returns the ends in the order in which Poll found them, servers first where one Poll found
  /// several; without the ends of processes that are started again.
  const std::vector<ProcessEnd>& ends() const { return ends_; }

  /// A process that had ended, and the decision about it.
  struct Restart {
    ProcessEnd end;
    RestartDecision decision;
  };

  /// Returns the decisions to start processes again, or not to where one might expect it, in the
  /// same order.
  const std::vector<Restart>& restarts() const { return restarts_; }
  uint32_t starts_max() const { return restart_.starts_max(); }

  /// Returns the numbers of the processes of this role that run or are about to be started again,
  /// ascending.
  std::vector<uint32_t> Running(Role role) const;

  /// Returns whether it has processes of this role, running or not.
  bool Has(Role role) const;

  /// Returns the host:port of server 0. Empty before Start.
  const std::string& coordinator() const { return coordinator_; }

 private:
  struct Member {
    ProcessName name;
    std::vector<std::string> command;
    std::vector<std::string> variables;  // Those that it has beside psctl's own.
    ChildProcess process;
    absl::Time started;
    uint64_t reached = 0;
    uint32_t starts = 0;  // Those again, in a row.
    std::optional<RestartFacts::Before> before;
    std::optional<absl::Time> starts_at;  // Set while the process has ended and is to start again.
    bool was_told = false;
    bool has_ended = false;
  };

  absl::StatusOr<ChildProcess> Launch(ProcessName name, const std::vector<std::string>& command,
                                      const std::vector<std::string>& variables) const;
  absl::Status StartProcess(ProcessName name, std::vector<std::string> command,
                            const std::vector<std::string>& variables = {});
  absl::Status StartOne(ProcessName name);
  absl::Status StartServer(ProcessName name);

  /// Returns where a server listens: where it did if it was here before, in this run or that of an
  /// earlier psctl that had the same directory.
  std::string ListenAddressOf(ProcessName name) const;
  absl::Status StartWorker(uint32_t worker);
  absl::Status StartOwnWorker(uint32_t worker);
  absl::Status WaitForCoordinator();

  /// Notes the end of a process, and decides whether it is started again.
  void OnEnd(Member& member, const ProcessEnd& end);
  void StartAgain(Member& member);

  /// Leaves those alone that were to be started again. Their ends count unless the run did without
  /// them.
  void ForgetStarts(bool they_count);
  bool AnyIsLeft(std::optional<Role> role) const;
  void WaitForEnd(absl::Duration timeout, bool or_stop) const;

  /// Tells the processes of this role, or all, to stop.
  void Tell(std::optional<Role> role);
  void Kill(std::optional<Role> role);

  /// Waits until none is left of this role, or of all.
  void WaitUntilEnded(std::optional<Role> role, absl::Time deadline);

  const Options options_;
  const RestartPolicy restart_;
  const RunDirectory& directory_;
  const StopSignal& stop_;

  std::vector<Member> members_;
  std::vector<ProcessEnd> ends_;
  std::vector<Restart> restarts_;
  std::string coordinator_;
  bool have_started_ = false;    // All processes, for the first time.
  bool starts_no_more_ = false;  // The run is over, as far as is known, or is to end.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_CLUSTER_H_
