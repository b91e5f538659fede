#ifndef SLIPSTREAM_TESTS_BENCHMARKS_EXCHANGE_COMMANDS_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_EXCHANGE_COMMANDS_H_

#include <functional>

#include "absl/status/status.h"

namespace slipstream::benchmarks {

/// Says `ready` on stdout, and for each line `run N` on stdin calls `exchange` N times and answers
/// `done SECONDS MEDIAN`: of all N, and the median of one. `failed TEXT` is the last word if one
/// fails. Returns the exit status, at the end of stdin at the latest.
///
/// So that whoever compares contenders lets them take turns, round by round, in one run.
int ServeCommands(const std::function<absl::Status()>& exchange);

/// For a process that is told nothing but its end, a server: waits for the end of stdin.
void AwaitEndOfCommands();

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_EXCHANGE_COMMANDS_H_
