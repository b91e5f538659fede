#ifndef SLIPSTREAM_DEPLOY_PSCTL_ROOT_CAUSE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_ROOT_CAUSE_H_

#include <span>

#include "common/process/exit_code.h"
#include "deploy/psctl/process_end.h"

namespace slipstream {

/// What an ended process means for a run that is not over.
enum class EndMeaning {
  /// It did its part, or stopped because it was told to.
  kHarmless,
  /// A worker was killed from outside, or lost its place in the run (fenced after it stood still
  /// for longer than its lease) or its servers; the others take over its work.
  kLostWorker,
  /// The run cannot be trusted or cannot go on.
  kFailure,
};

EndMeaning MeaningOf(const ProcessEnd& end);

/// A server that stopped when it was told, and says that its push log lacks pushes. The run is over
/// by then, and its weights are not touched.
bool LostItsPushLog(const ProcessEnd& end);

/// It says itself that it lost the run or its peers, or, before it had begun to train, that this
/// machine has no room for it.
bool IsCutOff(const ProcessEnd& end);

/// The end that explains why the run failed, nullptr if none does. `ends` is in the order in which
/// the processes ended.
///
/// A process often fails only because another one did: its peer went away, or it was refused. So
/// causes are looked for in this order, the earliest first within each: what no other process can
/// bring about (configuration, files, usage); crashes and internal errors; unreachable peers and
/// temporary failures of servers, then of workers; workers killed from outside.
const ProcessEnd* FindRootCause(std::span<const ProcessEnd> ends);

/// Nothing another process did can be behind this end: there is no other cause to wait for.
bool ExplainsItself(const ProcessEnd& end);

/// The exit code of psctl itself: a code that tells the user what to do is passed on, everything
/// else is kInternal.
ExitCode ExitCodeFollowing(const ProcessEnd& cause);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_ROOT_CAUSE_H_
