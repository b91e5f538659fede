#ifndef SLIPSTREAM_COMMON_MODEL_FILE_MODEL_HEADER_H_
#define SLIPSTREAM_COMMON_MODEL_FILE_MODEL_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {

using ModelMetadata = std::map<std::string, std::string>;

/// The header of a model file, which stands before its values.
struct ModelHeader {
  /// The tensors, in the order of their data. Tensors without values are left out.
  TensorLayout layout;
  ModelMetadata metadata;
};

/// The format's bound: a longer header is refused.
inline constexpr uint64_t kModelHeaderBytesMax = 100'000'000;

/// A tensor that a model file has beside those of the run, such as the mean of a BatchNorm.
struct StoredTensor {
  std::string name;

  /// The format's name of its type, such as "I64".
  std::string dtype;
  std::vector<uint64_t> shape;

  /// Its values, one after another, in little-endian order.
  std::string bytes;
};

/// Returns the header's JSON, padded with spaces so that the values, which follow the 8 bytes of
/// its length and the JSON, begin at a multiple of 8. `before` and `after` lie before and after the
/// layout's tensors.
std::string EncodeModelHeader(const TensorLayout& layout, const ModelMetadata& metadata,
                              std::span<const StoredTensor> before = {},
                              std::span<const StoredTensor> after = {});

/// Reads the header's JSON; `data_bytes` follow it in the file. Its tensors may come in any order;
/// keys of a tensor beside dtype, shape and data_offsets are ignored. DATA_LOSS names the tensor
/// and the error: a type other than fp32, a shape that does not match its bytes, tensors that
/// overlap or leave gaps, names or keys that are missing or repeated, data that end too early or
/// too late, or a limit of TensorLayout passed.
absl::StatusOr<ModelHeader> ParseModelHeader(std::string_view json, uint64_t data_bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MODEL_FILE_MODEL_HEADER_H_
