#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_ROOT_CAUSE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_ROOT_CAUSE_H_

#include <span>

#include "common/process/exit_code.h"
#include "deploy/psctl/run/process_end.h"

namespace slipstream {

/// The consequence of a process's end for a run that is not over.
enum class EndMeaning {
  /// The process did its part, or stopped because psctl told it to.
  kHarmless,
  /// A worker was killed from outside, lost its place in the run (it was fenced because it stood
  /// still for longer than its lease), or lost its servers. The other workers take over its work.
  kLostWorker,
  /// An aggregator is gone, and its workers push to the servers. The run needs it only to begin.
  kLostAggregator,
  /// The run cannot be trusted or cannot go on.
  kFailure,
};

/// Returns the consequence of this end.
EndMeaning MeaningOf(const ProcessEnd& end);

/// Returns whether a server stopped when psctl told it to, and reports by its exit code that its
/// push log lacks pushes, or that its last checkpoint could not be written. The run is over by
/// then, and its figures are not affected.
bool LostAFile(const ProcessEnd& end);

/// Returns whether the process reports by its exit code that it lost the run or its peers, or that
/// this machine had no room for it before it began to train.
bool IsCutOff(const ProcessEnd& end);

/// Returns the end that explains why the run failed, or nullptr if none does. `ends` is in the
/// order in which the processes ended.
///
/// A process often fails only because another one did: its peer went away, or it was refused. So
/// causes are ranked, and within a rank the earliest end counts: (1) errors that no other process
/// can bring about (configuration, files, a log that cannot be written, usage); (2) crashes and
/// internal errors; (3) unreachable peers and temporary failures of servers; (4) those of workers;
/// (5) workers killed from outside; (6) aggregators, unless they report an error of the first kind:
/// they make it when they start, and the run does not begin without them.
const ProcessEnd* FindRootCause(std::span<const ProcessEnd> ends);

/// Returns whether no other process can have caused this end, so that no other cause needs to be
/// waited for.
bool ExplainsItself(const ProcessEnd& end);

/// Returns whether the process would only end so again if it were started again: it reports an
/// error in its settings or files, or that the run is over.
bool OnlyRepeats(const ProcessEnd& end);

/// Returns the end of a server that was asked to stop and has not ended as one that has saved its
/// state; nullptr if there is none.
const ProcessEnd* FindUnsaved(std::span<const ProcessEnd> ends);

/// Returns psctl's own exit code for this cause. Codes that tell the user what to do are passed on;
/// all others become kInternal.
ExitCode ExitCodeFollowing(const ProcessEnd& cause);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_ROOT_CAUSE_H_
