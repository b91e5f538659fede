#ifndef SLIPSTREAM_COMMON_PROCESS_OUTPUT_TEXT_H_
#define SLIPSTREAM_COMMON_PROCESS_OUTPUT_TEXT_H_

#include <cstdio>
#include <string_view>

namespace slipstream {

/// Writes as much of `text` as can be written. Failures are ignored: whether people can still read
/// (a disk is full, a terminal is gone) must not decide what a program does. fmt::print would
/// throw.
inline void WriteToStderr(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

/// Does the same for stdout; GuardedMain reports output that could not be written.
inline void WriteToStdout(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_OUTPUT_TEXT_H_
