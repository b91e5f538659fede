#ifndef SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_
#define SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_

#include <csignal>
#include <cstdio>
#include <exception>

#include "common/process/exit_code.h"

namespace slipstream {

/// Returns what `body` returns. An exception that a library lets through (out of memory, above all)
/// ends the program with a line that names it and kInternal, instead of an abort without a word. A
/// limit on file sizes becomes an error of the write that meets it, instead of the program's end.
template <typename Body>
int GuardedMain(const char* program, Body body) noexcept {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: internal error: %s\n", program, error.what());
  } catch (...) {
    std::fprintf(stderr, "%s: internal error\n", program);
  }
  return static_cast<int>(ExitCode::kInternal);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_
