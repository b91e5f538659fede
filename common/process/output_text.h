#ifndef SLIPSTREAM_COMMON_PROCESS_OUTPUT_TEXT_H_
#define SLIPSTREAM_COMMON_PROCESS_OUTPUT_TEXT_H_

#include <cstdio>
#include <string_view>

namespace slipstream {

/// Writes what can be written of `text`. Whether people can still read (a disk is full, a terminal
/// is gone) must not decide on what a program does, so nobody is told of a failure; fmt::print
/// would throw.
inline void WriteToStderr(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

/// The same for stdout; GuardedMain answers for what could not be written.
inline void WriteToStdout(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_OUTPUT_TEXT_H_
