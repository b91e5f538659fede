#ifndef SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_
#define SLIPSTREAM_COMMON_PROCESS_GUARDED_MAIN_H_

#include <cstdio>
#include <exception>

#include "common/process/exit_code.h"

namespace slipstream {

/// Returns what `body` returns. An exception that a library lets through (out of memory, above all)
/// ends the program with a line that names it and kInternal, instead of an abort without a word.
template <typename Body>
int GuardedMain(const char* program, Body body) noexcept {
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
