#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_PROCESS_END_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_PROCESS_END_H_

#include <cstdint>
#include <string>

namespace slipstream {

enum class Role { kServer, kWorker, kAggregator };

/// Names one of a cluster's processes.
struct ProcessName {
  Role role = Role::kServer;

  /// The shard of a server or an aggregator, or the worker's id.
  uint32_t number = 0;

  /// The group of an aggregator.
  uint32_t group = 0;

  /// Return "server-0", for file names, and "server 0", for messages. The aggregator of group 1 for
  /// shard 0 is "aggregator-1.0" and "aggregator 1.0".
  std::string Slug() const;
  std::string Text() const;

  friend bool operator==(const ProcessName&, const ProcessName&) = default;
};

/// Returns whether programs end with this code after a signal that asks them to stop: 128 + its
/// number.
bool IsStopCode(int exit_code);

/// How a process ended: by its own exit, or by a signal (then `signal` is not 0).
struct ProcessEnd {
  ProcessName name;
  int exit_code = 0;
  int signal = 0;

  /// Set if psctl had asked the process to stop.
  bool was_told = false;

  /// Returns "exit code 78 (configuration)" or "signal 9 (Killed)".
  std::string HowText() const;

  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_PROCESS_END_H_
