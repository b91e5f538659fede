#ifndef SLIPSTREAM_TESTS_BENCHMARKS_EXCHANGE_COMMANDS_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_EXCHANGE_COMMANDS_H_

#include <functional>

#include "absl/status/status.h"

namespace slipstream::benchmarks {

/// Prints `ready` on stdout. For each line `run N` on stdin, calls `exchange` N times and prints
/// `done SECONDS MEDIAN`: the time of all N calls, and the median of one. If a call fails, prints
/// `failed TEXT` and returns. Returns the exit status, at the latest at the end of stdin.
///
/// Contenders that take these commands can be compared in one run, in which they take turns.
int ServeCommands(const std::function<absl::Status()>& exchange);

/// Waits for the end of stdin. For servers, which take no commands and only have to know when to
/// end.
void AwaitEndOfCommands();

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_EXCHANGE_COMMANDS_H_
