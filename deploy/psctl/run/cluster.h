#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_CLUSTER_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
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

namespace slipstream {

/// Returns the host:port of a server that listens on loopback, from the content of its port file
/// ("41234" or "127.0.0.1:41234"), or nothing while the file is empty. Servers write it in one
/// piece.
std::optional<std::string> ParsePortFile(std::string_view contents);

/// The processes of one run on this machine: starts them, notes how they end, stops them.
///
/// If it is asked to, it starts servers and aggregators again that end during the run: by the same
/// command, at the port where the others know them.
///
/// Not thread-safe: main's thread owns it (child_process.h says why).
class Cluster {
 public:
  /// A process that ends more often than so many times within so long is not started again.
  static constexpr size_t kStartsAgainMax = 5;
  static constexpr absl::Duration kStartsAgainTime = absl::Minutes(1);

  struct Options {
    ProgramPaths programs;
    uint32_t servers = 1;
    uint32_t workers = 1;

    /// The number of groups of workers that have an aggregator for each server.
    uint32_t groups = 0;

    /// The program of the workers with its arguments, if it is not ps_worker. The first word is its
    /// path.
    std::vector<std::string> worker_command;

    /// The format of log lines that workers write before they have the run's settings.
    LogSpec::Format worker_log_format = LogSpec::Format::kText;

    /// How workers show who they are.
    SecuritySpec security;

    /// Whether servers and aggregators that end during the run are started again.
    bool starts_again = false;

    /// How long server 0 may take until it listens.
    absl::Duration start_timeout = absl::Minutes(2);
  };

  /// `directory` and `stop` must outlive the cluster.
  Cluster(Options options, const RunDirectory& directory, const StopSignal& stop)
      : options_(std::move(options)), directory_(directory), stop_(stop) {}

  /// Starts server 0 and waits for its port, then starts all others. DEADLINE_EXCEEDED if server 0
  /// does not listen in time; ABORTED if it has ended, or if `stop` asks to. Processes that were
  /// started run until Stop.
  absl::Status Start();

  /// Notes which processes have ended, and starts those again that are to go on. Never blocks.
  void Poll();

  /// Waits until a process that ran at the last Poll ends, somebody asks to stop for the first
  /// time, or `timeout` (an hour at most) is over.
  void WaitForChange(absl::Duration timeout) const;

  /// Asks all running processes to stop, and kills those that still run after `patience`. No
  /// process runs when it returns.
  void Stop(absl::Duration patience);

  /// Returns the ends in the order in which Poll found them, servers first where one Poll found
  /// several; without the ends of processes that were started again.
  const std::vector<ProcessEnd>& ends() const { return ends_; }

  /// Returns the ends of processes that were started again, in the same order.
  const std::vector<ProcessEnd>& started_again() const { return started_again_; }

  /// Returns the numbers of the running processes of this role, ascending.
  std::vector<uint32_t> Running(Role role) const;

  /// Returns the host:port of server 0. Empty before Start.
  const std::string& coordinator() const { return coordinator_; }

 private:
  struct Member {
    ProcessName name;
    std::vector<std::string> command;
    std::vector<std::string> variables;  // Those that it has beside psctl's own.
    ChildProcess process;
    bool has_ended = false;
    std::deque<absl::Time> starts_again;  // The last ones.
  };

  absl::StatusOr<ChildProcess> Launch(ProcessName name, const std::vector<std::string>& command,
                                      const std::vector<std::string>& variables) const;
  absl::Status StartProcess(ProcessName name, std::vector<std::string> command,
                            const std::vector<std::string>& variables = {});
  absl::Status StartServer(uint32_t shard);
  absl::Status StartAggregator(uint32_t group, uint32_t shard);
  absl::Status StartWorker(uint32_t worker);
  absl::Status StartOwnWorker(uint32_t worker);
  absl::Status WaitForCoordinator();

  /// Starts the process again that has ended so, if it may go on. Returns whether it runs.
  bool StartAgain(Member& member, const ProcessEnd& end);
  void WaitForEnd(absl::Duration timeout, bool or_stop) const;
  void SignalAll(int signal);

  const Options options_;
  const RunDirectory& directory_;
  const StopSignal& stop_;

  /// Returns how the server program is started: on loopback, and so that it stays when the run is
  /// over.
  std::vector<std::string> ServerCommand(uint32_t shard) const;

  std::vector<Member> members_;
  std::vector<ProcessEnd> ends_;
  std::vector<ProcessEnd> started_again_;
  std::string coordinator_;
  bool have_started_ = false;  // All processes, for the first time.
  bool were_told_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_CLUSTER_H_
