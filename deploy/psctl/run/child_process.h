#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_CHILD_PROCESS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_CHILD_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace slipstream {

/// Returns the variables of `block` (like environ: NAME=value strings, then nullptr) that servers
/// and workers inherit: all but PS_… variables. The resolved run.yaml has those already, overridden
/// by flags. A server that saw them again would let them override the flags.
std::vector<std::string> ChildEnvironment(const char* const* block);

/// A program that was started and will not outlive this process.
///
/// The program leads its own process group, so that a Ctrl-C on the terminal reaches it only
/// through this process, and its own children end with it. The kernel kills it when the thread that
/// started it ends: start it from main's thread.
///
/// Not thread-safe: one owner.
class ChildProcess {
 public:
  struct Options {
    /// The program's path, then its arguments.
    std::vector<std::string> command;

    /// All variables that it inherits, as NAME=value.
    std::vector<std::string> environment;

    /// Files that stdout and stderr are appended to; equal paths are shared.
    std::string stdout_path;
    std::string stderr_path;

    /// The numbers of the processor cores on which it may run; empty for those of this process.
    std::vector<int> cores = {};
  };

  struct End {
    int exit_code = 0;
    int signal = 0;  // 0: it ended by itself with exit_code.

    /// The processor time of the program and of all its descendants that have been waited for, and
    /// the most main memory that any one of them held.
    double cpu_seconds = 0;
    uint64_t peak_bytes = 0;
  };

  /// Returns once the program runs in the child. Fails, leaving nothing behind, if a file cannot
  /// be opened or the program cannot be started; the message names it.
  static absl::StatusOr<ChildProcess> Start(const Options& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  /// Kills the program if it still runs.
  ~ChildProcess();

  pid_t pid() const { return pid_; }

  /// Becomes readable when the program ends. For poll only.
  int fd() const { return fd_; }

  /// Returns how the program ended, or nothing while it runs. Never blocks. The rest of its process
  /// group is killed before the program is reaped.
  std::optional<End> Poll();

  /// Sends `signal` to its process group. Has no effect once Poll has returned the end.
  void Signal(int signal);

 private:
  ChildProcess(pid_t pid, int fd) : pid_(pid), fd_(fd) {}
  void Release();

  pid_t pid_ = -1;  // −1 after a move.
  int fd_ = -1;     // Likewise.
  std::optional<End> end_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_CHILD_PROCESS_H_
