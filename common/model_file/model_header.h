#ifndef SLIPSTREAM_COMMON_MODEL_FILE_MODEL_HEADER_H_
#define SLIPSTREAM_COMMON_MODEL_FILE_MODEL_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"

namespace slipstream {

using ModelMetadata = std::map<std::string, std::string>;

/// What stands before the values of a model file.
struct ModelHeader {
  /// In the order of the file.
  TensorLayout layout;
  ModelMetadata metadata;
};

/// Of the format: a longer header is refused.
inline constexpr uint64_t kModelHeaderBytesMax = 100'000'000;

/// The header's JSON, padded with spaces so that values that follow it and its 8 bytes of length
/// lie on a multiple of 8.
std::string EncodeModelHeader(const TensorLayout& layout, const ModelMetadata& metadata);

/// Reads the header's JSON; `data_bytes` follow it in the file. DATA_LOSS names the tensor and what
/// is wrong: anything but fp32, a shape that does not match its bytes, tensors that overlap, leave
/// gaps or come in another order than their data, names or keys that are missing, unknown or there
/// twice, data that end too early or too late, or a limit of TensorLayout passed.
absl::StatusOr<ModelHeader> ParseModelHeader(std::string_view json, uint64_t data_bytes);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MODEL_FILE_MODEL_HEADER_H_
