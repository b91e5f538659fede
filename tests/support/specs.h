#ifndef SLIPSTREAM_TESTS_SUPPORT_SPECS_H_
#define SLIPSTREAM_TESTS_SUPPORT_SPECS_H_

#include <cstdint>

#include "common/run/run_spec.h"

namespace slipstream {

/// Returns n-softsync.
constexpr ConsistencySpec Softsync(uint32_t n) {
  ConsistencySpec spec = {.policy = PolicyKind::kSoftsync};
  spec.parameters["n"] = n;
  return spec;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_SPECS_H_
