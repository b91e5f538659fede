#ifndef SLIPSTREAM_WORKER_COMPUTE_DEVICE_CLAIM_H_
#define SLIPSTREAM_WORKER_COMPUTE_DEVICE_CLAIM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/files/file_descriptor.h"

namespace slipstream {

/// A share of one of the machine's devices. Shares spread the workers of a machine evenly over its
/// devices, whatever their ids are and whoever started them. A share is a name in Linux's abstract
/// socket namespace, so a killed process leaves none behind. Processes in other network namespaces
/// do not see it.
///
/// Not thread-safe: one owner.
class DeviceClaim {
 public:
  /// Takes a share of the device of which the fewest processes have a share, and returns its
  /// position; if there are several, the first from `first` on. `names` are the names that all
  /// processes use for the devices. Gives back an earlier share first. If no name can be taken (in
  /// a sandbox, for example), returns `first`. REQUIRES: names is not empty.
  size_t Take(const std::vector<std::string>& names, size_t first);

 private:
  FileDescriptor share_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_DEVICE_CLAIM_H_
