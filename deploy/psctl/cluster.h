#ifndef SLIPSTREAM_DEPLOY_PSCTL_CLUSTER_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CLUSTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/process/stop_signal.h"
#include "common/run/run_spec.h"
#include "deploy/psctl/child_process.h"
#include "deploy/psctl/process_end.h"
#include "deploy/psctl/program_locations.h"
#include "deploy/psctl/run_directory.h"

namespace slipstream {

/// host:port of a server that listens on loopback, from what its port file holds ("41234" or
/// "127.0.0.1:41234"); nothing while it is empty. Servers write it in one piece.
std::optional<std::string> ParsePortFile(std::string_view contents);

/// The processes of one run on this machine: starts them, notes how they end, stops them.
///
/// Not thread-safe: main's thread owns it (child_process.h says why).
class Cluster {
 public:
  struct Options {
    ProgramPaths programs;
    uint32_t servers = 1;
    uint32_t workers = 1;

    /// Of what workers say before they have the run's settings.
    LogSpec::Format worker_log_format = LogSpec::Format::kText;

    /// How workers show who they are.
    SecuritySpec security;

    /// Where workers save the weights they measure; empty: where the run's settings say.
    std::string save_dir;

    /// Server 0 must listen by then.
    absl::Duration start_timeout = absl::Minutes(2);
  };

  /// `directory` and `stop` must outlive the cluster.
  Cluster(Options options, const RunDirectory& directory, const StopSignal& stop)
      : options_(std::move(options)), directory_(directory), stop_(stop) {}

  /// Starts server 0 and waits for its port, then all others. DEADLINE_EXCEEDED if it does not
  /// listen in time; ABORTED if it ended instead, or if `stop` asks to. What was started runs on
  /// until Stop.
  absl::Status Start();

  /// Notes which processes have ended. Never blocks.
  void Poll();

  /// Waits until a process that ran at the last Poll ends, somebody asks to stop, or `timeout` (an
  /// hour at most) is over.
  void WaitForChange(absl::Duration timeout) const;

  /// Asks all running processes to stop, and kills those that have not after `patience`. None runs
  /// afterwards.
  void Stop(absl::Duration patience);

  /// In the order in which Poll found them; of one Poll, servers first.
  const std::vector<ProcessEnd>& ends() const { return ends_; }
  uint32_t running(Role role) const;

  /// host:port, once started.
  const std::string& coordinator() const { return coordinator_; }

 private:
  struct Member {
    ProcessName name;
    ChildProcess process;
    bool has_ended = false;
  };

  absl::Status StartProcess(ProcessName name, std::vector<std::string> command);
  absl::Status StartServer(uint32_t shard);
  absl::Status StartWorker(uint32_t worker);
  absl::Status WaitForCoordinator();
  void WaitForEnd(absl::Duration timeout, bool or_stop) const;
  void SignalAll(int signal);

  const Options options_;
  const RunDirectory& directory_;
  const StopSignal& stop_;

  std::vector<Member> members_;
  std::vector<ProcessEnd> ends_;
  std::string coordinator_;
  bool were_told_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CLUSTER_H_
