#ifndef SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_
#define SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <system_error>

#include "common/process/exit_code.h"
#include "common/process/process_limits.h"

namespace slipstream {

/// Returns whether the exception says that a thread could not be started: the one limit that the
/// standard library reports so.
inline bool IsOutOfThreads(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && system->code() == std::errc::resource_unavailable_try_again;
}

/// Ends the program because of an exception that nobody can catch, as it left another thread or a
/// function that is noexcept. That no thread could be started is no bug and leaves no core file.
[[noreturn]] inline void EndForUncaught() noexcept {
  try {
    if (const std::exception_ptr uncaught = std::current_exception()) {
      std::rethrow_exception(uncaught);
    }
    std::fprintf(stderr, "internal error: the program was terminated by itself\n");
  } catch (const std::exception& error) {
    if (IsOutOfThreads(error)) {
      std::fprintf(stderr, "error: %s\n", ThreadFailureText().c_str());
      std::_Exit(static_cast<int>(ExitCode::kTemporary));
    }
    std::fprintf(stderr, "internal error: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "internal error\n");
  }
  std::abort();
}

/// Returns what `body` returns, or kIo if all went well but the output could not be written: a full
/// disk shows only when buffers are emptied. If a library lets an exception through (out of memory,
/// above all), the program ends with a line that names it and kInternal, instead of an abort
/// without a word. If no thread could be started, wherever that was, it ends with a line that names
/// the limit, and kTemporary. A write that meets a limit on file sizes fails with an error, instead
/// of ending the program.
template <typename Body>
int GuardedMain(const char* program, Body body) noexcept {
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(EndForUncaught);
  try {
    const int code = body();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fprintf(stderr, "%s: error: the output could not be written\n", program);
    return code == 0 ? static_cast<int>(ExitCode::kIo) : code;
  } catch (const std::exception& error) {
    if (IsOutOfThreads(error)) {
      std::fprintf(stderr, "%s: error: %s\n", program, ThreadFailureText().c_str());
      return static_cast<int>(ExitCode::kTemporary);
    }
    // The library that formats output throws if the output cannot be written.
    const bool is_output = std::ferror(stdout) != 0;
    std::fprintf(stderr, "%s: %s: %s\n", program, is_output ? "error" : "internal error",
                 error.what());
    return static_cast<int>(is_output ? ExitCode::kIo : ExitCode::kInternal);
  } catch (...) {
    std::fprintf(stderr, "%s: internal error\n", program);
    return static_cast<int>(ExitCode::kInternal);
  }
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_
