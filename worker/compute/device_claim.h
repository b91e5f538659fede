#ifndef SLIPSTREAM_WORKER_COMPUTE_DEVICE_CLAIM_H_
#define SLIPSTREAM_WORKER_COMPUTE_DEVICE_CLAIM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "common/files/file_descriptor.h"

namespace slipstream {

/// A share of one of the machine's devices, so that its workers are spread evenly over them,
/// whatever their ids are and whoever started them. It is a name in Linux' abstract namespace for
/// each share: a process that is killed leaves none behind, and processes in other network
/// namespaces do not see it.
///
/// Not thread-safe: one owner.
class DeviceClaim {
 public:
  /// Takes a share of the device that the fewest processes have a share of, and returns its
  /// position; of several, the first from `first` on. `names` are those that all processes have
  /// for the devices. Gives back what it took before. Where no names can be had (in a sandbox,
  /// say), the answer is `first`. REQUIRES: names is not empty.
  size_t Take(const std::vector<std::string>& names, size_t first);

 private:
  FileDescriptor share_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_DEVICE_CLAIM_H_
