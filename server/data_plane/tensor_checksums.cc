#include "server/data_plane/tensor_checksums.h"

#include "common/kernels/values_checksum.h"

namespace slipstream {

std::vector<uint64_t> TensorChecksums::Of(std::span<const float> values) {
  if (tensors_->size() > kTensorsMax) return {};
  MutexLock lock(mutex_);
  if (!checksums_.has_value()) {
    checksums_.emplace();
    for (const ParameterRange& tensor : *tensors_) {
      checksums_->push_back(ValuesChecksum(values.subspan(tensor.begin, tensor.size())));
    }
  }
  return *checksums_;
}

}  // namespace slipstream
