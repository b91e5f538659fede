#ifndef SLIPSTREAM_TESTS_SUPPORT_SPECS_H_
#define SLIPSTREAM_TESTS_SUPPORT_SPECS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/layout/tensor_layout.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// Returns n-softsync.
constexpr ConsistencySpec Softsync(uint32_t n) {
  ConsistencySpec spec = {.policy = PolicyKind::kSoftsync};
  spec.parameters["n"] = n;
  return spec;
}

/// Returns the layout of tensors with these numbers of values, named 0.weight, 1.weight, ….
inline TensorLayout LayoutOf(std::initializer_list<uint64_t> sizes) {
  TensorLayout layout;
  for (const uint64_t size : sizes) {
    const std::string name = std::to_string(layout.tensors().size()) + ".weight";
    PS_CHECK(layout.Append(name, {size}).ok());
  }
  return layout;
}

inline std::vector<WorkerId> Workers(const std::vector<uint32_t>& ids) {
  std::vector<WorkerId> workers;
  for (const uint32_t id : ids) workers.push_back(WorkerId{id});
  return workers;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_SPECS_H_
