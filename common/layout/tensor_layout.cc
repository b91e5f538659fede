#include "common/layout/tensor_layout.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace slipstream {
namespace {

/// Returns the product of `shape`, or 0 if it is more than `limit` or a dimension is zero.
size_t BoundedProduct(const std::vector<uint64_t>& shape, size_t limit) {
  size_t product = 1;
  for (uint64_t dimension : shape) {
    if (dimension == 0 || dimension > limit / product) return 0;
    product *= dimension;
  }
  return product;
}

absl::Status Refuse(const std::string& name, const std::string& reason) {
  return absl::InvalidArgumentError("tensor \"" + name.substr(0, 64) + "\" " + reason);
}

}  // namespace

size_t Tensor::size() const {
  size_t product = 1;
  for (uint64_t dimension : shape) product *= dimension;
  return product;
}

absl::Status TensorLayout::Append(std::string name, std::vector<uint64_t> shape) {
  if (name.empty()) return absl::InvalidArgumentError("a tensor needs a name");
  if (name.size() > kNameBytesMax) {
    return Refuse(name, "has a name of more than " + std::to_string(kNameBytesMax) + " bytes");
  }
  if (index_.contains(name)) return Refuse(name, "is there twice");
  if (tensors_.size() == kTensorsMax) {
    return Refuse(name, "would be one more than " + std::to_string(kTensorsMax));
  }
  if (shape.size() > kDimensionsMax) {
    return Refuse(name, "has more than " + std::to_string(kDimensionsMax) + " dimensions");
  }
  for (uint64_t dimension : shape) {
    if (dimension == 0) return Refuse(name, "has a dimension of zero");
  }
  const size_t values = BoundedProduct(shape, kParametersMax - parameters_);
  if (values == 0 || values > kParametersMax - parameters_) {
    return Refuse(
        name, "brings the parameters to more than " + std::to_string(kParametersMax) + " values");
  }

  index_.emplace(name, tensors_.size());
  tensors_.push_back({std::move(name), std::move(shape), parameters_});
  parameters_ += values;
  return absl::OkStatus();
}

uint64_t TensorLayout::Fingerprint() const {
  // The length in front of a name keeps two layouts from sharing one text, whatever names hold.
  std::string text = "slipstream layout 1\n";
  for (const Tensor& tensor : tensors_) {
    text += std::to_string(tensor.name.size()) + ":" + tensor.name;
    for (uint64_t dimension : tensor.shape) text += " " + std::to_string(dimension);
    text += "\n";
  }
  return XXH64(text.data(), text.size(), 0);
}

std::vector<ParameterRange> TensorLayout::TensorsWithin(const ParameterRange& range) const {
  std::vector<ParameterRange> within;
  for (const Tensor& tensor : tensors_) {
    const size_t begin = std::max(tensor.offset, range.begin);
    const size_t end = std::min(tensor.offset + tensor.size(), range.end);
    if (begin < end) within.push_back({begin - range.begin, end - range.begin});
  }
  return within;
}

size_t TensorLayout::TensorAt(size_t position) const {
  const auto found = std::ranges::upper_bound(
      tensors_, position, {}, [](const Tensor& tensor) { return tensor.offset + tensor.size(); });
  return static_cast<size_t>(found - tensors_.begin());
}

const Tensor* TensorLayout::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace slipstream
