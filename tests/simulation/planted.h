#ifndef SLIPSTREAM_TESTS_SIMULATION_PLANTED_H_
#define SLIPSTREAM_TESTS_SIMULATION_PLANTED_H_

#include <cstdlib>
#include <string_view>

namespace slipstream {

/// Returns whether this process has a bug of planted_bugs.bzl: the one that $PLANTED_BUG names.
inline bool IsPlanted(std::string_view bug) {
  static const char* const planted = std::getenv("PLANTED_BUG");
  return planted != nullptr && bug == planted;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_PLANTED_H_
