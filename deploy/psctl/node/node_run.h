#ifndef SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_RUN_H_
#define SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_RUN_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/process/exit_code.h"
#include "common/process/stop_signal.h"
#include "common/settings/run_spec.h"
#include "deploy/psctl/command_line.h"
#include "deploy/psctl/node/node_verdict.h"
#include "deploy/psctl/node/status_follower.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/run/cluster.h"
#include "deploy/psctl/run/directory.h"
#include "deploy/psctl/run/metrics_log.h"
#include "deploy/psctl/run/progress_printer.h"

namespace slipstream {

/// The part of a run that one node has, from its start to its end.
///
/// The node of shard 0 leads: it shows and records the course of the run, and writes the summary.
/// All others only see to their processes.
///
/// Not thread-safe: main's thread owns it.
class NodeRun {
 public:
  struct Options {
    Cluster::Options cluster;
    NodeArguments arguments;

    /// Whether this node has the server of shard 0.
    bool leads = false;

    /// Whether servers keep what a later start goes on from.
    bool saves = false;

    /// Whether a node that is gone comes back with all others, and not by itself.
    bool starts_together = false;

    /// How long workers' programs may go on once the servers have ended.
    absl::Duration finish_timeout = absl::InfiniteDuration();
    LogSpec::Format log_format = LogSpec::Format::kText;
    std::string name;  // The run's.
  };

  /// `stop` must outlive it.
  NodeRun(Options options, RunDirectory directory, const StopSignal& stop,
          std::shared_ptr<grpc::ChannelCredentials> credentials);

  /// Returns psctl's exit code.
  int Run();

 private:
  NodeVerdict Watch();
  void AskForStatus(absl::Time now);
  void OnStatus(v1::RunStatus status, absl::Time now);
  NodeFacts Facts(absl::Time now) const;
  void TellOfEnds();

  /// Where all nodes are started again together, node 0 notices that the node of a server is gone,
  /// and nodes with servers that node 0 is. Whoever does tells the others, as does a node whose
  /// server has failed in a way that a new start does not mend. They save then, before the run
  /// fails.
  void LookForMissingNodes(absl::Time now);

  /// Tells the others by a file in the directory of the attempt that they are to leave, and by what
  /// code.
  void TellOthers(ExitCode code, const std::string& why);

  /// Returns why this node has to leave: somebody asks to stop, or a node is gone without which the
  /// run cannot go on. Empty if it may stay.
  std::string ReasonToLeave() const;

  /// Has servers save and all processes end, for this reason. Without checkpoints, ends training
  /// instead, as there would be nothing to go on from.
  int Leave(const std::string& why);
  void EndTraining();

  int Finish(NodeVerdict verdict);
  int End(int exit_code, const std::string& ended_by, const std::string& error);

  const Options options_;
  const RunDirectory directory_;
  const StopSignal& stop_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const absl::Time start_;
  const std::string notice_path_;                     // Of a node that is lost.
  const std::filesystem::file_time_type old_notice_;  // Of an earlier start with this directory.
  Cluster cluster_;
  ProgressPrinter progress_;
  std::optional<MetricsLog> metrics_;  // Set if it leads.
  std::optional<OperatorClient> client_;
  std::optional<StatusFollower> follower_;  // Set if it leads.
  v1::RunStatus status_;
  std::string lost_;  // Why the run lacks a node, in words; empty if it lacks none.
  int lost_code_ = static_cast<int>(ExitCode::kPreempted);  // That of nodes which leave for it.
  absl::Time next_question_;
  absl::Time answered_;  // When a status came last.
  absl::Time servers_gone_ = absl::InfiniteFuture();
  size_t ends_told_ = 0;
  size_t restarts_told_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_RUN_H_
