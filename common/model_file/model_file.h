#ifndef SLIPSTREAM_COMMON_MODEL_FILE_MODEL_FILE_H_
#define SLIPSTREAM_COMMON_MODEL_FILE_MODEL_FILE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"
#include "common/layout/tensor_layout.h"
#include "common/model_file/model_header.h"

namespace slipstream {

/// The SHA-256 of the weights (weights_digest.h), in the metadata of every file that we write.
inline constexpr char kWeightsSha256[] = "weights_sha256";

/// Writes `weights` with their names and shapes, straight from where they lie; on the disk when it
/// returns. Readers of `path` find the file before or this one, whole; a failure leaves the first
/// and is DATA_LOSS, naming the path and the reason.
/// REQUIRES: weights.size() == layout.parameters().
absl::Status WriteModelFile(const std::string& path, const TensorLayout& layout,
                            const ModelMetadata& metadata, std::span<const float> weights);

/// A model file whose header has been read and found sound.
///
/// Errors begin with the path. NOT_FOUND: it cannot be opened; DATA_LOSS: it is no sound model file
/// or cannot be read.
///
/// Thread-safe: const after construction.
class ModelFile {
 public:
  static absl::StatusOr<ModelFile> Open(const std::string& path);

  /// Of the tensors, in the order of the file.
  const TensorLayout& layout() const { return header_.layout; }
  const ModelMetadata& metadata() const { return header_.metadata; }

  /// Fills `weights`, laid out as `layout`, from the tensors of the same names, straight to where
  /// they belong. INVALID_ARGUMENT, changing nothing, if the file's tensors are not those of
  /// `layout`, names the first difference; DATA_LOSS if the metadata name another SHA-256 than the
  /// weights read have.
  /// REQUIRES: weights.size() == layout.parameters().
  absl::Status Read(const TensorLayout& layout, std::span<float> weights) const;

 private:
  ModelFile(std::string path, FileDescriptor file, ModelHeader header, uint64_t data_begin);

  absl::Status CheckTensors(const TensorLayout& layout) const;

  std::string path_;
  FileDescriptor file_;
  ModelHeader header_;
  uint64_t data_begin_ = 0;  // Byte of the file.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MODEL_FILE_MODEL_FILE_H_
