#include "deploy/psctl/run/root_cause.h"

#include <csignal>
#include <optional>

namespace slipstream {
namespace {

/// Returns whether the process reports an error that no other process can have brought about.
bool IsOwnError(const ProcessEnd& end) {
  if (end.signal != 0) return false;
  const auto code = static_cast<ExitCode>(end.exit_code);
  return code == ExitCode::kConfiguration || code == ExitCode::kIo || code == ExitCode::kUsage ||
         code == ExitCode::kLogNotWritten || code == ExitCode::kDiverged;
}

/// Returns the rank of an end as a cause, where 0 is the likeliest; nothing for a harmless end.
std::optional<int> RankOf(const ProcessEnd& end) {
  const EndMeaning meaning = MeaningOf(end);
  if (meaning == EndMeaning::kHarmless) return std::nullopt;
  if (IsOwnError(end)) return 0;
  if (meaning == EndMeaning::kLostAggregator) return 5;
  if (meaning == EndMeaning::kLostWorker) return IsCutOff(end) ? 3 : 4;
  return IsCutOff(end) ? 2 : 1;
}

}  // namespace

bool IsCutOff(const ProcessEnd& end) {
  const auto code = static_cast<ExitCode>(end.exit_code);
  return end.signal == 0 && (code == ExitCode::kUnreachable || code == ExitCode::kTemporary ||
                             code == ExitCode::kRunFailed);
}

bool LostAFile(const ProcessEnd& end) {
  return end.name.role == Role::kServer && end.was_told && end.signal == 0 &&
         end.exit_code == static_cast<int>(ExitCode::kIo);
}

EndMeaning MeaningOf(const ProcessEnd& end) {
  if (end.was_told && (end.signal != 0 || IsStopCode(end.exit_code))) return EndMeaning::kHarmless;
  if (end.name.role == Role::kWorker) {
    // A worker that obeyed a signal to stop from outside is lost like one killed by SIGKILL.
    const bool was_taken = end.signal != 0 || IsStopCode(end.exit_code);
    if (was_taken || IsCutOff(end)) return EndMeaning::kLostWorker;
    return end.exit_code == 0 ? EndMeaning::kHarmless : EndMeaning::kFailure;
  }
  if (end.name.role == Role::kAggregator) {
    return end.was_told ? EndMeaning::kHarmless : EndMeaning::kLostAggregator;
  }
  // Servers stay until psctl stops them, so even a clean end leaves the run without its weights.
  const bool ended_well = (end.was_told && end.exit_code == 0) || LostAFile(end);
  return ended_well ? EndMeaning::kHarmless : EndMeaning::kFailure;
}

const ProcessEnd* FindRootCause(std::span<const ProcessEnd> ends) {
  const ProcessEnd* cause = nullptr;
  for (const ProcessEnd& end : ends) {
    const std::optional<int> rank = RankOf(end);
    if (rank && (cause == nullptr || *rank < *RankOf(*cause))) cause = &end;
  }
  return cause;
}

bool ExplainsItself(const ProcessEnd& end) { return RankOf(end) == 0; }

bool OnlyRepeats(const ProcessEnd& end) {
  // A server whose log cannot be written ends, and only another process can tell what is on the
  // disk.
  const bool may_go_on = end.exit_code == static_cast<int>(ExitCode::kLogNotWritten);
  const bool is_over = end.exit_code == static_cast<int>(ExitCode::kRunFailed);
  return end.signal == 0 && (is_over || (IsOwnError(end) && !may_go_on));
}

const ProcessEnd* FindUnsaved(std::span<const ProcessEnd> ends) {
  for (const ProcessEnd& end : ends) {
    const bool has_ended_well = end.exit_code == 0 || IsStopCode(end.exit_code);
    // SIGTERM kills only a server that has not begun.
    const bool has_saved = end.signal == 0 ? has_ended_well : end.was_told && end.signal == SIGTERM;
    if (end.name.role == Role::kServer && !has_saved) return &end;
  }
  return nullptr;
}

ExitCode ExitCodeFollowing(const ProcessEnd& cause) {
  if (cause.signal != 0) return ExitCode::kInternal;
  switch (static_cast<ExitCode>(cause.exit_code)) {
    case ExitCode::kUnreachable:
    case ExitCode::kLogNotWritten:
    case ExitCode::kIo:
    case ExitCode::kTemporary:
    case ExitCode::kConfiguration:
    case ExitCode::kRunFailed:
    case ExitCode::kDiverged:
      return static_cast<ExitCode>(cause.exit_code);
    default:
      return ExitCode::kInternal;
  }
}

}  // namespace slipstream
