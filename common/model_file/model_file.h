#ifndef SLIPSTREAM_COMMON_MODEL_FILE_MODEL_FILE_H_
#define SLIPSTREAM_COMMON_MODEL_FILE_MODEL_FILE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_descriptor.h"
#include "common/layout/tensor_layout.h"
#include "common/model_file/model_header.h"

namespace slipstream {

/// The SHA-256 of the weights (weights_digest.h), in the metadata of every file that we write.
inline constexpr char kWeightsSha256[] = "weights_sha256";

/// Writes `weights` with their names and shapes, straight from where they lie, and tensors that
/// belong to the model beside them. The file is on the disk when this returns. Readers of `path`
/// find the previous file or this one, each whole. After a failure the previous file stays; the
/// error is DATA_LOSS and names the path and the reason. REQUIRES: weights.size() ==
/// layout.parameters().
absl::Status WriteModelFile(const std::string& path, const TensorLayout& layout,
                            const ModelMetadata& metadata, std::span<const float> weights,
                            std::vector<StoredTensor> beside = {});

/// A model file whose header has been read and found sound.
///
/// Errors begin with the path. NOT_FOUND: the file cannot be opened; DATA_LOSS: it is no sound
/// model file or cannot be read.
///
/// Thread-safe: const after construction.
class ModelFile {
 public:
  static absl::StatusOr<ModelFile> Open(const std::string& path);

  /// Returns the layout of the tensors, in the order of their data.
  const TensorLayout& layout() const { return header_.layout; }
  const ModelMetadata& metadata() const { return header_.metadata; }

  /// Fills `weights`, laid out as `layout`, from the tensors of the same names, without a copy in
  /// between. INVALID_ARGUMENT, naming the first difference and changing nothing, if the file's
  /// tensors are not those of `layout`; DATA_LOSS if the metadata name another SHA-256 than that of
  /// the weights read.
  /// REQUIRES: weights.size() == layout.parameters().
  absl::Status Read(const TensorLayout& layout, std::span<float> weights) const;

 private:
  ModelFile(std::string path, FileDescriptor file, ModelHeader header, uint64_t data_begin);

  absl::Status CheckTensors(const TensorLayout& layout) const;

  std::string path_;
  FileDescriptor file_;
  ModelHeader header_;
  uint64_t data_begin_ = 0;  // Where the values begin, in bytes of the file.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MODEL_FILE_MODEL_FILE_H_
