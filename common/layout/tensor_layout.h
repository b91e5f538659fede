#ifndef SLIPSTREAM_COMMON_LAYOUT_TENSOR_LAYOUT_H_
#define SLIPSTREAM_COMMON_LAYOUT_TENSOR_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace slipstream {

/// A half-open range of positions in the flat parameter vector.
struct ParameterRange {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
  friend bool operator==(const ParameterRange&, const ParameterRange&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.begin, self.end);
  }
};

/// One named tensor of fp32 values in the flat parameter vector.
struct Tensor {
  std::string name;
  std::vector<uint64_t> shape;
  size_t offset = 0;  // The place of its first value, in values.

  size_t size() const;
  friend bool operator==(const Tensor&, const Tensor&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.name, self.shape, self.offset);
  }
};

/// How the model's named tensors lie in one flat vector: one after another, without gaps.
///
/// Thread-safe: const after construction (Append is construction).
class TensorLayout {
 public:
  /// Limits on what a peer may propose; they bound what a server allocates and parses.
  static constexpr size_t kTensorsMax = 100'000;
  static constexpr size_t kNameBytesMax = 512;
  static constexpr size_t kDimensionsMax = 8;
  static constexpr size_t kParametersMax = size_t{1} << 36;

  /// Adds a tensor after the last. Fails, changing nothing, if the name is empty, too long or
  /// taken, a dimension is zero, or a limit is passed.
  absl::Status Append(std::string name, std::vector<uint64_t> shape);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  size_t parameters() const { return parameters_; }

  /// Returns a number that is equal for equal names, shapes and order. It is stable across machines
  /// and versions (XXH64 of a canonical text).
  uint64_t Fingerprint() const;

  /// Returns the ranges of the tensors, or parts of them, that lie within `range`, from its begin
  /// on.
  std::vector<ParameterRange> TensorsWithin(const ParameterRange& range) const;

  /// Returns the place among tensors() of the one with the value at `position`; how many tensors
  /// there are if none has it.
  size_t TensorAt(size_t position) const;

  /// Returns the tensor of that name; null if there is none.
  const Tensor* Find(std::string_view name) const;

  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.tensors_, self.index_, self.parameters_);
  }

 private:
  std::vector<Tensor> tensors_;

  // Maps a name to its place in tensors_: a peer may propose many tensors, so a search would be
  // slow.
  std::map<std::string, size_t, std::less<>> index_;
  size_t parameters_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LAYOUT_TENSOR_LAYOUT_H_
