#ifndef SLIPSTREAM_WORKER_DATA_NPY_FILE_H_
#define SLIPSTREAM_WORKER_DATA_NPY_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/data/file_bytes.h"
#include "worker/data/npy_header.h"
#include "worker/data/read_progress.h"

namespace slipstream {

/// An open .npy file whose header is sound and whose size is the one that its header announces.
///
/// Not thread-safe: one owner.
class NpyFile {
 public:
  /// Takes the values from `first` on, in order; what it fails with ends the reading.
  using Sink = std::function<absl::Status(uint64_t first, std::span<const double> values)>;

  /// Fails with NOT_FOUND or DATA_LOSS; the message starts with the path.
  static absl::StatusOr<NpyFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<uint64_t>& shape() const { return header_.shape; }

  /// "(60000, 28, 28)".
  std::string ShapeText() const;

  /// "[3, 0, 5]", where the value at `position` in C order stands.
  std::string IndexText(uint64_t position) const;

  /// Reads all values, a piece of bounded size at a time. Whole numbers beyond 2^53 are rounded.
  /// Once only.
  absl::Status Read(const ReadProgress& progress, const Sink& sink);

 private:
  NpyFile(std::string path, OpenFile file, NpyHeader header)
      : path_(std::move(path)), file_(std::move(file)), header_(std::move(header)) {}

  std::string path_;
  OpenFile file_;
  NpyHeader header_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_NPY_FILE_H_
