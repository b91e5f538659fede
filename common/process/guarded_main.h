#ifndef SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_
#define SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_

#include <csignal>
#include <cstdio>
#include <exception>

#include "common/process/exit_code.h"

namespace slipstream {

/// Returns what `body` returns, or kIo if all went well but the output could not be written: a full
/// disk shows only when buffers are emptied. If a library lets an exception through (out of memory,
/// above all), the program ends with a line that names it and kInternal, instead of an abort
/// without a word. A write that meets a limit on file sizes fails with an error, instead of ending
/// the program.
template <typename Body>
int GuardedMain(const char* program, Body body) noexcept {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const int code = body();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fprintf(stderr, "%s: error: the output could not be written\n", program);
    return code == 0 ? static_cast<int>(ExitCode::kIo) : code;
  } catch (const std::exception& error) {
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
