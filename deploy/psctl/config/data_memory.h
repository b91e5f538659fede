#ifndef SLIPSTREAM_DEPLOY_PSCTL_CONFIG_DATA_MEMORY_H_
#define SLIPSTREAM_DEPLOY_PSCTL_CONFIG_DATA_MEMORY_H_

#include <cstdint>
#include <optional>

#include "common/model/net_shapes.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The main memory that the examples of a run take, in bytes.
struct DataMemory {
  /// The pages of files that are mapped as they are, once for all workers of a machine. The system
  /// can drop them and read them again.
  uint64_t shared = 0;

  /// In each worker: examples that are generated, unpacked or parsed, and the answers of all.
  uint64_t each = 0;
};

/// Returns about how much the examples take, by the settings and by the sizes of the files. Absent
/// if the files are not on this machine, or if workers bring their own examples.
std::optional<DataMemory> DataMemoryNeeded(const RunSpec& run, const NetShapes& net);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_CONFIG_DATA_MEMORY_H_
