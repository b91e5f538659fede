#ifndef SLIPSTREAM_COMMON_BASE_CHECK_H_
#define SLIPSTREAM_COMMON_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

/// Aborts the process if `condition` is false. Use it only for conditions that nothing but a bug in
/// this program can break, never on input: what a peer, a file or a flag can cause is an
/// absl::Status.
#define PS_CHECK(condition)                                                              \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#endif  // SLIPSTREAM_COMMON_BASE_CHECK_H_
