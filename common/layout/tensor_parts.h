#ifndef SLIPSTREAM_COMMON_LAYOUT_TENSOR_PARTS_H_
#define SLIPSTREAM_COMMON_LAYOUT_TENSOR_PARTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {

/// A run of a tensor's values, in a shard that does not have all of them.
struct TensorPart {
  std::string name;
  ParameterRange range;         // Counted from the tensor's first value.
  std::vector<uint64_t> shape;  // The shape of the whole tensor.

  friend bool operator==(const TensorPart&, const TensorPart&) = default;
};

/// Returns the name under which a part stands in a file, such as "fc1.weight[0:512 of 64x16]". The
/// own name of a tensor is cut to 448 bytes if it is longer, and ends with its hash then.
std::string NameOfPart(const TensorPart& part);

/// Returns the part that has this name; nothing if it is the name of a whole tensor.
std::optional<TensorPart> ParsePart(std::string_view name);

/// Returns the tensors that lie in `range`, in their order. A tensor that lies there only in part
/// has one dimension and the name of the part. So has a tensor whose own name ends with "]", which
/// could be taken for that of a part.
/// REQUIRES: the range lies within the layout.
TensorLayout PartOf(const TensorLayout& layout, const ParameterRange& range);

/// Returns the layout whose PartOf are `parts`, which must come in the order of their ranges.
/// INVALID_ARGUMENT, naming the tensor, if values are missing between two parts or at the end of a
/// tensor.
absl::StatusOr<TensorLayout> JoinParts(std::span<const TensorLayout> parts);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LAYOUT_TENSOR_PARTS_H_
