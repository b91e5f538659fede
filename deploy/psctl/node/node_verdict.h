#ifndef SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_VERDICT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_VERDICT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "deploy/psctl/run/process_end.h"
#include "proto/status.pb.h"

namespace slipstream {

/// The facts that a node has about its part of a run.
struct NodeFacts {
  /// The ends of its processes, and how many of each role are left.
  std::span<const ProcessEnd> ends;
  size_t servers_left = 0;
  size_t workers_left = 0;

  /// Whether it has servers at all.
  bool has_servers = false;

  /// The phase of the run that the coordinator reported last.
  v1::Phase phase = v1::PHASE_UNSPECIFIED;

  /// How long its last server has been gone, and how long workers' programs may go on then.
  absl::Duration without_servers;
  absl::Duration finish_timeout = absl::InfiniteDuration();
};

enum class NodeVerdict {
  kGoOn,
  /// Its part is done.
  kDone,
  /// A server has failed, or reports that the run has.
  kServerFailed,
};

/// Returns the state of a node's part. Its servers end by themselves when the run is over, and say
/// by their codes how it ended. Its workers are not all that the run has, so one that fails does
/// not end the node.
NodeVerdict JudgeNode(const NodeFacts& facts);

/// Returns how the run of a node that has to leave had ended by then, as its processes or the
/// coordinator have said; kGoOn if it had not.
NodeVerdict JudgeLeaving(const NodeFacts& facts);

/// Returns a server whose node is gone, as far as one can tell: it has been silent for longer than
/// `patience` of `start_timeout`, or never heard, while the run trains. Nothing if there is none.
std::optional<uint32_t> FindMissingShard(const v1::RunStatus& status, absl::Duration start_timeout,
                                         absl::Duration patience);

/// Returns the exit code of a node whose part is done: 0 if the run has finished, as its servers or
/// the coordinator have said, and else the code of the worker that explains its end best.
int NodeExitCode(const NodeFacts& facts);

/// Returns those of the ends that processes of this role have had.
std::vector<ProcessEnd> EndsOf(Role role, std::span<const ProcessEnd> ends);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_VERDICT_H_
